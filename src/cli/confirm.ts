import { createInterface } from 'node:readline';
import { io } from './output.ts';
import { printable } from './printable.ts';

/** Asks a question on the terminal; only yes counts as true. Undefined without a terminal: nobody was asked. */
export async function confirm(question: string): Promise<boolean | undefined> {
  const { stdin, stderr } = io; // standard output can be captured, as in TOKEN=$(...)
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  stderr.write(`${printable(question)} [y/N] `);
  const lines = createInterface({ input: stdin });
  try {
    for await (const answer of lines) return /^\s*y(es)?\s*$/i.test(answer);
    stderr.write('\n'); // after Ctrl-D, the cursor is still behind the question
    return false;
  } finally {
    lines.close(); // otherwise the terminal keeps the process running
  }
}
