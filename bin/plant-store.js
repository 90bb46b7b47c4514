#!/usr/bin/env node
// Picks the entry, nothing else: the sources in a checkout, the compiled files in what is published.
// Plain old syntax, so that a Node that is too old gets a sentence and not a stack.
import { existsSync } from 'node:fs';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    'Plant Store needs Node 24.15 or later; this is ' +
      process.version +
      '.\nIn a checkout, `npm ci` brings the right one, and `npm start` and `npx plant-store` use it.',
  );
  process.exit(1);
}

const source = new URL('../src/cli/main.ts', import.meta.url);
const compiled = new URL('../dist/cli/main.js', import.meta.url);
const { main } = await import((existsSync(source) ? source : compiled).href);
await main(process.argv);
