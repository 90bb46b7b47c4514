/**
 * Bytes that were sound requests before they were cut, repeated and replaced in places. Their meaning is unknown, so only
 * the rules for every response are checked.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { wrongsOf } from './answers.ts';
import { keepTokens, tokensFor, withTokens, type Tokens } from './people.ts';
import { bytesOf, type Bytes } from './request.ts';
import { request } from './requests.ts';
import type { Counts, Target } from './session.ts';
import { rarely } from './values.ts';
import { Wire } from './wire.ts';

/** Inserts bytes at this part of a thousand, and skips so many of those behind, or repeats so many of those before. */
interface Change {
  at: number;
  inserted: Bytes;
  skipped: number;
}

/** What a client writes over one connection before it closes its side. */
export interface Mangled {
  sound: Bytes;
  changes: readonly Change[];
  cuts: readonly number[];
}

const marks =
  '\0~\r\n~ ~\t~:~,~%~\r\n\r\n~0\r\n\r\n~\r\n ~ffffffffffffffff\r\n~HTTP/1.1~Host: y\r\n~Content-Length: 3\r\n~Transfer-Encoding: chunked\r\n~Connection: close\r\n~Expect: 100-continue\r\n~GET /plants HTTP/1.1\r\nHost: x\r\n\r\n';
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(1_000),
  inserted: fc.oneof(
    fc.constantFrom('', 'a'.repeat(9_000), ...marks.split('~')),
    fc.nat(255).map((byte) => String.fromCharCode(byte)),
  ),
  skipped: rarely(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -1_000, max: 1_000 })),
});

// HEAD and CONNECT are left out: without the method, the end of their responses is unknown.
// A changed request could revoke a token that the rest of the run needs.
const readable = request.filter(
  ({ method, target }) => method !== 'HEAD' && method !== 'CONNECT' && !target.includes('/token'),
);

export const mangled = (count: number): fc.Arbitrary<Mangled[]> =>
  fc.array(
    fc.record({
      sound: fc
        .array(readable, { minLength: 1, maxLength: 3 })
        .map((all) => all.map(bytesOf).join('')),
      changes: fc.array(change, { minLength: 1, maxLength: 4 }),
      cuts: fc.array(fc.nat(999), { maxLength: 3 }),
    }),
    { minLength: count, maxLength: count },
  );

function bytesFrom({ sound, changes }: Mangled, tokens: Tokens): Bytes {
  return changes.reduce(
    (bytes, { at, inserted, skipped }) => {
      const place = Math.floor((at * bytes.length) / 1_001);
      return bytes.slice(0, place) + inserted + bytes.slice(Math.max(0, place + skipped));
    },
    withTokens(sound, tokens),
  );
}

/** Sends all to every service, to a store of its own; throws at the first answer that is wrong. */
export async function endure(
  targets: readonly Target[],
  all: readonly Mangled[],
  counts: Counts,
): Promise<void> {
  const tokens = tokensFor();
  await Promise.all(
    targets.map(async ({ port, database }) => {
      await keepTokens(database, tokens);
      let sent = '';
      for (const one of all) {
        const bytes = bytesFrom(one, tokens);
        sent += bytes.replace(/Bearer plant_\w+/g, '');
        const wire = new Wire(port);
        await wire.write(bytes, one.cuts);
        wire.halfClose();
        try {
          for (let answer; (answer = await wire.answer('GET'));) {
            counts[answer.status] = (counts[answer.status] ?? 0) + 1;
            assert.deepEqual(wrongsOf(answer, { method: 'GET', sent }), [], answer.body);
          }
        } catch (cause) {
          throw new Error(`${String(cause)}\n${JSON.stringify(bytes)}`, { cause });
        } finally {
          wire.close();
        }
      }
    }),
  );
}
