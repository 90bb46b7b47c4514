// Loads the client in Node: from the sources in a checkout, from compiled files in the published package.
// package.json names it for the condition "node-addons", which bundlers do not have: they use the compiled files.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../src/client/client.ts', import.meta.url));
const compiled = fileURLToPath(new URL('../dist/client/client.js', import.meta.url));

// Unlike import(), this also works if a CommonJS module requires the client.
const load = createRequire(import.meta.url);
export const { PlantStore, PlantStoreError } = load(existsSync(source) ? source : compiled);
