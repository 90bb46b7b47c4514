/**
 * serve on a terminal.
 */
import type { TestContext } from 'node:test';
import { quotedExecutable, startOnTerminal } from './on-terminal.ts';

/** Starts serve on its own terminal, if a program for that is installed. */
export async function serveOnTerminal(t: TestContext, args: readonly string[]) {
  const serving = `exec ${quotedExecutable} serve --port 0 ${args.join(' ')}`;
  const terminal = startOnTerminal(t, serving);
  if (terminal === undefined) return undefined;
  const listens = /^Plant Store listens on (\S+)\nDatabase: .*\n[^]* listening /m;
  await terminal.shows(listens);
  const [, address = ''] = listens.exec(terminal.output()) ?? [];
  return {
    address,
    output: () => terminal.output(),
    interrupt() {
      terminal.type('\x03'); // Ctrl-C
      return terminal.ended;
    },
  };
}
