/**
 * The part of the Standard Schema interface that typed calls use: schemas of Zod, Valibot, ArkType and others implement
 * it, so a host brings the one it has and this package depends on none.
 * {@link https://standardschema.dev}
 */

/** A schema of the host's own that checks a value and gives it a type. `T` is the type of what it gives. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>;
  };
}

/** What a {@link StandardSchema} says of a value. */
export type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One fault that a {@link StandardSchema} found. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Whether a value can be used as a {@link StandardSchema}. Some libraries make their schemas functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<StandardSchema>)["~standard"];
  return typeof standard === "object" && standard !== null && typeof standard.validate === "function";
}
