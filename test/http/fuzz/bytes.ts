/**
 * Bytes that were sound requests before they were cut, repeated and replaced in places. Their meaning is unknown, so only
 * the rules for every response are checked, and that no acknowledged plant is lost.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { wrongsOf } from './answers.ts';
import { isOf } from './document.ts';
import { keepTokens, tokensFor, withTokens, type Tokens } from './people.ts';
import { bytesOf, type Bytes } from './request.ts';
import { request } from './requests.ts';
import type { Counts, Target } from './session.ts';
import { rarely } from './values.ts';
import { valuesOf, Wire } from './wire.ts';

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
    targets.map(async (target) => {
      await keepTokens(target.archive, tokens);
      const created = new Set<string>();
      let deleted = 0;
      let sent = '';
      for (const one of all) {
        const bytes = bytesFrom(one, tokens);
        sent += bytes.replace(/Bearer plant_\w+/g, '');
        for await (const answer of answersTo(target, bytes, one.cuts)) {
          counts[answer.status] = (counts[answer.status] ?? 0) + 1;
          const wrongs = wrongsOf(answer, { method: 'GET', sent });
          if (wrongs.length > 0)
            assert.fail(`${wrongs.join('\n')}\n${JSON.stringify([bytes, answer])}`);
          // A new share has no location.
          if (answer.status === 201)
            valuesOf(answer, 'location').forEach((path) => created.add(path));
          if (answer.status === 204) deleted++;
        }
      }
      const missing = created.difference(new Set(await pathsOf(target, tokens)));
      assert.ok(missing.size <= deleted, `acknowledged and lost: ${[...missing].join()}`);
    }),
  );
}

async function* answersTo({ port }: Target, bytes: Bytes, cuts: readonly number[] = []) {
  const wire = new Wire(port);
  await wire.write(bytes, cuts);
  wire.halfClose();
  try {
    for (let answer = await wire.answer('GET'); answer; answer = await wire.answer('GET'))
      yield answer;
  } catch (cause) {
    throw new Error(`${String(cause)}\n${JSON.stringify(bytes)}`, { cause });
  } finally {
    wire.close();
  }
}

/** Where the plants of both stores are, once each of them is one that could have been created. */
async function pathsOf(target: Target, tokens: Tokens): Promise<string[]> {
  const plants: { id: number }[] = [];
  for (const name of ['maria', 'dora']) {
    const list = `GET /plants?fields=id,name,tag HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokens[name]}\r\n\r\n`;
    const [answer] = await Array.fromAsync(answersTo(target, list));
    plants.push(...JSON.parse(Buffer.from(answer?.body ?? '', 'latin1').toString()));
  }
  for (const plant of plants) assert.ok(isOf('NewPlant', plant), JSON.stringify(plant));
  return plants.map(({ id }) => `/plants/${id}`);
}
