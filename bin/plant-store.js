#!/usr/bin/env node
// Starts the command line: from the sources in a checkout, from compiled files in the published package.
// It uses only old syntax, so that an old Node prints a message instead of a syntax error.
import { existsSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const source = new URL('../src/cli/main.ts', import.meta.url);
const compiled = new URL('../dist/cli/main.js', import.meta.url);
const isCheckout = existsSync(source);

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    'Plant Store needs Node 24.15 or later; this is ' +
      process.version +
      (isCheckout
        ? '. Run `npm ci`: it installs the right Node for `npm start` and `npx plant-store`.'
        : '. Install it from https://nodejs.org.'),
  );
  process.exit(1);
}

// Without a listener this signal opens Node's debugger, to which every user of the machine can connect.
process.on('SIGUSR1', () => {});

// The compile cache makes later starts faster. It is in the installation, where only people who can change the
// program can change it: in the system's temporary folder, others could plant code. If it is not writable, Node
// runs without it.
const compiledCode = fileURLToPath(new URL('../.cache', import.meta.url));
try {
  mkdirSync(compiledCode, { mode: 0o700 });
} catch {
  // It exists, or Node runs without it.
}
module.enableCompileCache(compiledCode);
if (!process.env.NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = compiledCode; // for threads and child processes

const { main } = await import((isCheckout ? source : compiled).href);
process.exitCode = await main(process.argv);
