import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { FORM_FORMATS } from "../../src/formats.ts";

const directory = new URL("../../schemas/", import.meta.url);

/** The names of our schemas, without `.json`. */
export const schemaNames: readonly string[] = readdirSync(directory)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.slice(0, -".json".length));

/** The text of one of our schemas, parsed. */
export function readSchema(name: string): AnySchemaObject {
  return JSON.parse(readFileSync(new URL(`${name}.json`, directory), "utf8")) as AnySchemaObject;
}

/** An ajv that knows all our schemas, with the strictness and the log that ajv has by default. */
export function loadSchemas(warn: (message: string) => void = () => {}): (name: string) => ValidateFunction {
  const logger = { log: warn, warn, error: warn };
  const ajv = new Ajv2020({ formats: { ...fullFormats, ...FORM_FORMATS }, logger });
  for (const name of schemaNames) ajv.addSchema(readSchema(name));
  return (name) => {
    const validate = ajv.getSchema(`mcp-rally:/schemas/${name}.json`);
    if (validate === undefined) throw new Error(`there is no schema ${name}`);
    return validate;
  };
}
