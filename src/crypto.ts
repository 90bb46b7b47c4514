/**
 * What is used of node:crypto. An import by name would read all that the module exports, and Web Crypto
 * would be loaded with it: 2 MiB that nobody uses.
 */
export const { hash, randomBytes, randomUUID } = process.getBuiltinModule('node:crypto');
