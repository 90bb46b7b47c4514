#!/usr/bin/env node
// Picks the entry: the sources in a checkout, the compiled files in what is published. And keeps what
// Node compiles of it.
// Plain old syntax, so that a Node that is too old gets a sentence and not a stack.
import { existsSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    'Plant Store needs Node 24.15 or later; this is ' +
      process.version +
      '.\nIn a checkout, `npm ci` brings the right one, and `npm start` and `npx plant-store` use it.',
  );
  process.exit(1);
}

// Without a listener this signal opens Node's debugger, to which every user of the machine can connect.
process.on('SIGUSR1', () => {});

// What Node has compiled is kept for the next start: that one is faster, and in a checkout it need not
// load what strips types. It is kept in this installation, where only who may change the program may
// change it, and not in the system's temporary folder, where anybody could leave code for us to run.
// Where it cannot be kept, every start is like the first.
const compiledCode = fileURLToPath(new URL('../.cache', import.meta.url));
try {
  mkdirSync(compiledCode, { mode: 0o700 }); // whatever the umask
} catch {
  // It is there already, or Node finds out that it cannot be.
}
module.enableCompileCache(compiledCode);
if (!process.env.NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = compiledCode; // for threads and workers

const source = new URL('../src/cli/main.ts', import.meta.url);
const compiled = new URL('../dist/cli/main.js', import.meta.url);
const { main } = await import((existsSync(source) ? source : compiled).href);
await main(process.argv);
