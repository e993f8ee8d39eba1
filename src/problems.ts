/**
 * A fault found in a value, and the path notation that all checks share: `content.tags[0]`, `content["first name"]`.
 */

/** What is wrong with a value, and where. Never holds the value itself (SAF-01). */
export interface Problem {
  /** Where: `content.age`, `roots[1].uri`. Empty for the value as a whole. */
  readonly path: string;
  /** What is wrong, as the rest of a sentence that begins with the path: "must be a string, not null". */
  readonly message: string;
}

const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/;

/** Extends a path by a property name or an array index. */
export function joinPath(base: string, key: string | number): string {
  if (typeof key === "number") return `${base}[${key}]`;
  if (!PLAIN_KEY.test(key)) return `${base}[${JSON.stringify(key)}]`;
  return base === "" ? key : `${base}.${key}`;
}

/** Sets an own property, also for a name such as `__proto__` that plain assignment would lose. */
export function setOwn<T>(target: Record<string, T>, key: string, value: T): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}
