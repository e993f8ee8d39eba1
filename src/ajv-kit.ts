/**
 * What the validator needs of ajv, set up for schemas that cannot be trusted. Imported only when a schema has to be
 * checked, because loading ajv takes longer than all the rest of the engine.
 */

import type { Ajv, AnySchema, CodeKeywordDefinition, ErrorObject, Options, ValidateFunction } from "ajv";
import { SchemaError } from "./errors.ts";
import { FORM_FORMATS } from "./formats.ts";
import {
  compilePattern,
  type LinearEngine,
  LinearEngineNeeded,
  loadLinearEngine,
  PatternFault,
} from "./patterns.ts";
import { joinPath, type Problem } from "./problems.ts";
import { clip } from "./show.ts";
import { isObject } from "./wire.ts";
import { createWorkMeter, WorkExceeded, type WorkMeter } from "./work-meter.ts";

/** The dialects of JSON Schema that can be checked. */
export type Dialect = "2020-12" | "draft-07";

/** Compiles schemas, each in an ajv of its own: what one schema names by `$id` can never be seen from another. */
export interface AjvKit {
  /** Compiles a schema that is ours to keep. Throws a {@link SchemaError}, or what {@link wantsLinear} is true of. */
  compile(schema: unknown, dialect: Dialect, checkMs: number): (value: unknown) => Problem | undefined;
  /** Whether an error of `compile` says no more than that the linear-time pattern engine has to be loaded first. */
  wantsLinear(error: unknown): boolean;
  /** Loads the linear-time pattern engine. */
  loadLinear(): Promise<void>;
}

const META_SCHEMA: Readonly<Record<Dialect, string>> = {
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
  "draft-07": "http://json-schema.org/draft-07/schema",
};

// Patterns of one schema, all together: a program of this size takes the linear engine about 0.1 s to compile.
const LARGEST_PATTERNS = 5_000;

/** Loads ajv and makes it ready. It yields to the event loop between the steps, so that no step holds it for long. */
export async function createAjvKit(): Promise<AjvKit> {
  const { Ajv, MissingRefError, _ } = await import("ajv");
  await turn();
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  await turn();
  const formats = await import("ajv-formats/dist/formats.js");
  const { fullFormats } = formats;
  await turn();

  // Messages are written here; without ajv's own, the code it generates is much shorter.
  const quiet: Options = { strict: false, logger: false, messages: false };
  const checkers: Partial<Record<Dialect, Ajv>> = {};
  /** The checker of schemas themselves; its meta-schema takes long to compile, so there is one for all. */
  const checker = (dialect: Dialect): Ajv => {
    const options = { ...quiet, validateFormats: false };
    checkers[dialect] ??= dialect === "2020-12" ? new Ajv2020(options) : new Ajv(options);
    return checkers[dialect];
  };
  checker("2020-12").validate(META_SCHEMA["2020-12"], true);
  await turn();

  let linear: LinearEngine | undefined;
  return {
    compile(schema, dialect, checkMs) {
      const meta = checker(dialect);
      if (!meta.validate(META_SCHEMA[dialect], schema)) throw malformed(meta.errors ?? [], schema, dialect);
      // ajv's own keyword, which turns a check into a promise; to JSON Schema it means nothing.
      if (isObject(schema)) delete schema.$async;
      const meter = createWorkMeter(checkMs);
      const options: Options = {
        ...quiet,
        // The schema has been checked above. Its own meta-schema is there for the schema that refers to it.
        meta: JSON.stringify(schema).includes(META_SCHEMA[dialect]),
        validateSchema: false,
        // Inlining could multiply the code; a reference is then one call, which the meter counts.
        inlineRefs: false,
        // "required" must not be met, nor "properties" reached, by what every object inherits.
        ownProperties: true,
        code: { optimize: false, regExp: patternFunction(() => linear, meter) },
      };
      const ajv = dialect === "2020-12" ? new Ajv2020(options) : new Ajv(options);
      for (const [name, format] of Object.entries({ ...fullFormats, ...FORM_FORMATS })) {
        ajv.addFormat(name, guardFormat(name, format));
      }
      meterKeywords(ajv, meter, _);
      return checkWith(compileWith(ajv, schema as AnySchema, MissingRefError), meter, checkMs);
    },
    wantsLinear: (error) => error instanceof LinearEngineNeeded,
    async loadLinear() {
      linear = await loadLinearEngine();
    },
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function compileWith(
  ajv: Ajv,
  schema: AnySchema,
  MissingRefError: new (...parameters: never[]) => { missingRef: string },
): ValidateFunction {
  try {
    return ajv.compile(schema);
  } catch (error) {
    if (!(error instanceof MissingRefError)) throw error;
    const ref = clip(error.missingRef, 300);
    throw new SchemaError(
      /^[a-z][a-z0-9+.-]*:/i.test(error.missingRef)
        ? `The schema refers to "${ref}", which is outside of it; references are never fetched. Put the definition into the schema, under "$defs".`
        : `The schema refers to "${ref}", which is not in it.`,
      "$ref",
    );
  }
}

/** The `RegExp` of ajv: compiles the patterns of one schema. */
function patternFunction(linear: () => LinearEngine | undefined, meter: WorkMeter) {
  let total = 0;
  const compile = (source: string) => {
    let pattern: ReturnType<typeof compilePattern>;
    try {
      pattern = compilePattern(source, linear());
    } catch (error) {
      if (!(error instanceof PatternFault)) throw error;
      throw new SchemaError(
        `The schema's pattern ${quote(source)} cannot be used: ${error.message}.`,
        "pattern",
      );
    }
    total += pattern.linearSize;
    if (total > LARGEST_PATTERNS) {
      throw new SchemaError("The schema's patterns are together too large to be checked safely.", "pattern");
    }
    return {
      test(text: string): boolean {
        const work = pattern.work(text.length);
        if (work > pattern.mostWork) {
          throw new SchemaError(
            `A string of ${text.length} characters is too long to be checked safely against the pattern ${quote(source)}.`,
            "",
          );
        }
        meter.spend(pattern.linearSize > 0 ? work * 20 : work);
        return pattern.test(text);
      },
      // ajv tells patterns apart by their text.
      toString: () => source,
    };
  };
  return Object.assign(compile, { code: "compilePattern" });
}

// Formats whose check is linear and whose text may rightly be long. All others are false of a text longer than this.
const LONG_FORMATS: ReadonlySet<string> = new Set([
  "uri",
  "byte",
  "binary",
  "password",
  "json-pointer",
  "json-pointer-uri-fragment",
]);
const LONGEST_FORMAT = 2_048;

type FormatOfAjv = Parameters<Ajv["addFormat"]>[1];

function guardFormat(name: string, format: unknown): FormatOfAjv {
  if (format === true || LONG_FORMATS.has(name)) return format as FormatOfAjv;
  if (format instanceof RegExp) return (text) => text.length <= LONGEST_FORMAT && format.test(text);
  const check = typeof format === "function" ? format : (format as { validate: unknown }).validate;
  if (typeof format === "object" && (format as { type?: string }).type === "number")
    return format as FormatOfAjv;
  return (text) => text.length <= LONGEST_FORMAT && (check as (text: string) => boolean)(text);
}

type Template = (strings: TemplateStringsArray, ...values: never[]) => never;
type Cost = number | "length" | "keys" | "schema";

// The keywords whose work is not bounded by the size of the schema alone, and what they cost at each place.
const COSTS: ReadonlyMap<string, readonly [cost: Cost, units: number]> = new Map([
  ["$ref", [1, 200]],
  ["$dynamicRef", [1, 200]],
  ["enum", ["schema", 10]],
  ["minLength", ["length", 1]],
  ["maxLength", ["length", 1]],
  ["format", ["length", 5]],
  ["items", ["length", 20]],
  ["contains", ["length", 20]],
  ["additionalItems", ["length", 20]],
  ["unevaluatedItems", ["length", 20]],
  ["additionalProperties", ["keys", 50]],
  ["unevaluatedProperties", ["keys", 50]],
  ["patternProperties", ["keys", 50]],
  ["propertyNames", ["keys", 50]],
]);

/** Puts a count of the work before the code of each costly keyword, and a `uniqueItems` in place that is not quadratic. */
function meterKeywords(ajv: Ajv, meter: WorkMeter, _: unknown): void {
  const code = _ as Template;
  const spend = (units: number) => meter.spend(units);
  for (const [keyword, [cost, units]] of COSTS) {
    changeCode(ajv, keyword, (definition) => (cxt, ruleType) => {
      const name = cxt.gen.scopeValue("func", { ref: spend });
      const data = cxt.data as never;
      if (cost === "length") cxt.gen.code(code`${name as never}((${data}.length || 1) * ${units as never})`);
      else if (cost === "keys")
        cxt.gen.code(code`${name as never}(Object.keys(${data}).length * ${units as never})`);
      else {
        const many = cost === "schema" ? (cxt.schema as readonly unknown[]).length : cost;
        cxt.gen.code(code`${name as never}(${(many * units) as never})`);
      }
      definition.code(cxt, ruleType);
    });
  }
  const unique = (items: readonly unknown[]) => allUnique(items, meter);
  changeCode(ajv, "uniqueItems", () => (cxt) => {
    if (cxt.schema !== true) return;
    const name = cxt.gen.scopeValue("func", { ref: unique });
    cxt.setParams({ i: 0 as never, j: 0 as never });
    cxt.pass(code`${name as never}(${cxt.data as never})`);
  });
}

function changeCode(
  ajv: Ajv,
  keyword: string,
  change: (definition: CodeKeywordDefinition) => CodeKeywordDefinition["code"],
): void {
  const rule = ajv.RULES.all[keyword];
  if (typeof rule !== "object" || !("code" in rule.definition)) return;
  const definition = rule.definition as CodeKeywordDefinition;
  rule.definition = { ...definition, code: change(definition) } as typeof rule.definition;
}

/** Whether no two items are equal as JSON, in time linear in their size. */
function allUnique(items: readonly unknown[], meter: WorkMeter): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = canonical(item);
    meter.spend(text.length * 10 + 50);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function checkWith(validate: ValidateFunction, meter: WorkMeter, checkMs: number) {
  return (value: unknown): Problem | undefined => {
    meter.begin();
    try {
      // The last error is the outermost: of a failed "anyOf", itself and not one of its branches.
      return validate(value) ? undefined : describe(validate.errors?.at(-1), value);
    } catch (error) {
      if (error instanceof SchemaError) throw error;
      if (error instanceof WorkExceeded) {
        throw new SchemaError(
          `Checking the value against its schema took longer than ${checkMs} ms and was given up (createValidator's checkMs).`,
          "",
        );
      }
      if (error instanceof RangeError) {
        throw new SchemaError(
          "The schema refers to itself without end, or the value nests too deeply to be checked.",
          "",
        );
      }
      throw new SchemaError(`The value could not be checked: ${clip((error as Error).message, 300)}.`, "");
    }
  };
}

function describe(error: ErrorObject | undefined, value: unknown): Problem {
  if (error === undefined) return { path: "", message: "must satisfy the schema" };
  const path = readPointer(error.instancePath, value);
  const { keyword, params } = error;
  switch (keyword) {
    case "required":
      return { path: joinPath(path, String(params.missingProperty)), message: "is required and missing" };
    case "additionalProperties":
      return { path: joinPath(path, String(params.additionalProperty)), message: "is not allowed" };
    case "unevaluatedProperties":
      return { path: joinPath(path, String(params.unevaluatedProperty)), message: "is not allowed" };
    default:
      return { path, message: clip(explain(keyword, params), 300) };
  }
}

/** What is wrong, from the keyword that failed and what it asks for; never from the value. */
function explain(keyword: string, params: Record<string, unknown>): string {
  switch (keyword) {
    case "type":
      return `must be ${[params.type].flat().join(" or ")}`;
    case "enum": {
      const allowed = params.allowedValues as readonly unknown[];
      const more = allowed.length > 12 ? ` and ${allowed.length - 12} more` : "";
      return `must be one of ${allowed.slice(0, 12).map(shown).join(", ")}${more}`;
    }
    case "const":
      return `must be ${shown(params.allowedValue)}`;
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return `must be ${String(params.comparison)} ${String(params.limit)}`;
    case "multipleOf":
      return `must be a multiple of ${String(params.multipleOf)}`;
    case "minLength":
    case "minItems":
    case "minProperties":
      return `must have at least ${String(params.limit)} ${UNITS[keyword]}`;
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return `must have at most ${String(params.limit)} ${UNITS[keyword]}`;
    case "pattern":
      return `must match the pattern ${quote(String(params.pattern))}`;
    case "format":
      return `must be of the format ${quote(String(params.format))}`;
    case "uniqueItems":
      return "must not hold the same item twice";
    case "false schema":
      return "is not allowed";
    default:
      return `must satisfy "${keyword}"`;
  }
}

const UNITS: Readonly<Record<string, string>> = {
  minLength: "characters",
  maxLength: "characters",
  minItems: "items",
  maxItems: "items",
  minProperties: "properties",
  maxProperties: "properties",
};

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "null").slice(0, 60);
}

/** A JSON pointer in the path notation of problems; an index is told from a key by what is there. */
function readPointer(pointer: string, value: unknown): string {
  let path = "";
  let at = value;
  for (const segment of pointer.split("/").slice(1)) {
    const key = segment.replaceAll("~1", "/").replaceAll("~0", "~");
    path = joinPath(path, Array.isArray(at) ? Number(key) : key);
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined;
  }
  return path;
}

function malformed(errors: readonly ErrorObject[], schema: unknown, dialect: Dialect): SchemaError {
  const first = errors[0];
  const path = first === undefined ? "" : readPointer(first.instancePath, schema);
  const where = path === "" ? "" : ` at ${clip(path, 300)}`;
  return new SchemaError(
    `The schema is no valid JSON Schema ${dialect}${where}: ${first === undefined ? "it does not satisfy its meta-schema" : explain(first.keyword, first.params)}.`,
    path,
  );
}

function quote(source: string): string {
  return clip(JSON.stringify(source), 120);
}
