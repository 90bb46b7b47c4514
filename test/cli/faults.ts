/**
 * Faults of the system, and the responses to them.
 */
import assert from 'node:assert/strict';
import { call, type Answer } from '../support/app.ts';

export async function idsOf(address: string, token: string): Promise<number[]> {
  const { status, json } = await call(`${address}/plants?fields=id`, 'GET', { token });
  assert.equal(status, 200);
  return (json as { id: number }[]).map(({ id }) => id);
}

/** Creates plants until one is refused. */
export async function createUntilRefused(address: string, token: string) {
  const acknowledged: number[] = [];
  for (let id = 1; id <= 5_000; id++) {
    const json = { id, name: 'x'.repeat(200) };
    const answer: Answer = await call(`${address}/plants`, 'POST', { token, json });
    if (answer.status !== 201) return { acknowledged, refused: answer, refusedId: id };
    acknowledged.push(id);
  }
  throw new Error('nothing was refused');
}

export function assertHonest({ status, text, headers }: Answer, kind: string): void {
  assert.equal(status, 503, text);
  const [before, after, ...others] = text.split(`"/problems/${kind}"`);
  assert.ok(after !== undefined && others.length === 0, text);
  assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  assert.doesNotMatch(`${before}${after}`, /sqlite|SQL|I\/O|\.db|\//i);
}

/** A command that fails the sync with the number `at` of each thread of a process. */
export function failingSync(at: number): string[] {
  const failing = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  return [...failing, '-e', `inject=fsync,fdatasync:error=EIO:when=${at}`];
}
