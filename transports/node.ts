/**
 * Modules of Node.js that only a working transport needs. Each would cost a process that imports a transport a millisecond
 * or more, most of it for making a namespace of all their exports; so they are taken when they are first used.
 */
export const node = {
  get buffer() {
    return process.getBuiltinModule("node:buffer");
  },
  get childProcess() {
    return process.getBuiltinModule("node:child_process");
  },
  get crypto() {
    return process.getBuiltinModule("node:crypto");
  },
  get fs() {
    return process.getBuiltinModule("node:fs");
  },
  get path() {
    return process.getBuiltinModule("node:path");
  },
  get zlib() {
    return process.getBuiltinModule("node:zlib");
  },
};
