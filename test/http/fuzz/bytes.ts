/**
 * Bytes that were sound requests before they were flipped, cut, repeated and spliced. Their meaning
 * is unknown, so only the rules for every response are checked, and that no acknowledged plant is lost.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { wrongsOf } from './answers.ts';
import { isPlant } from './document.ts';
import { keepTokens, tokensFor, withTokens, type Tokens } from './people.ts';
import { bytesOf, type Bytes } from './request.ts';
import { request } from './requests.ts';
import type { Counts, Target } from './run.ts';
import { valuesOf, Wire } from './wire.ts';

/** Places are parts of a thousand of what there is. */
type Change =
  | { kind: 'flip'; at: number; bit: number }
  | { kind: 'cut'; at: number; length: number }
  | { kind: 'repeat'; at: number; length: number }
  | { kind: 'insert'; at: number; bytes: Bytes }
  | { kind: 'splice'; at: number; from: number };

/** What a client writes over one connection before it closes its side. */
export interface Mangled {
  sound: Bytes;
  changes: readonly Change[];
  cuts: readonly number[];
}

const at = fc.nat(1_000);
const length = fc.integer({ min: 1, max: 40 });
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('flip' as const), at, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant('cut' as const), at, length }),
  fc.record({ kind: fc.constant('repeat' as const), at, length }),
  fc.record({
    kind: fc.constant('insert' as const),
    at,
    bytes: fc.oneof(
      fc.constantFrom(...'\0\r\n \t:,%\x7f\xff'.split('')),
      fc.constantFrom(
        '\r\n\r\n',
        '0\r\n\r\n',
        '\r\n ',
        'Host: y\r\n',
        'ffffffffffffffff\r\n',
        'HTTP/1.1',
      ),
      fc.constantFrom(
        'Content-Length: 3\r\n',
        'Transfer-Encoding: chunked\r\n',
        'Connection: close\r\n',
      ),
      fc.constantFrom(
        'Expect: 100-continue\r\n',
        'GET /plants HTTP/1.1\r\nHost: x\r\n\r\n',
        'a'.repeat(9_000),
      ),
    ),
  }),
  fc.record({ kind: fc.constant('splice' as const), at, from: at }),
);

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
  let bytes = withTokens(sound, tokens);
  for (const one of changes) {
    const place = Math.floor((one.at * bytes.length) / 1_001);
    const [before, behind] = [bytes.slice(0, place), bytes.slice(place)];
    switch (one.kind) {
      case 'flip':
        bytes =
          before + String.fromCharCode(behind.charCodeAt(0) ^ (1 << one.bit)) + behind.slice(1);
        break;
      case 'cut':
        bytes = before + behind.slice(one.length);
        break;
      case 'repeat':
        bytes = before + behind.slice(0, one.length) + behind;
        break;
      case 'insert':
        bytes = before + one.bytes + behind;
        break;
      case 'splice':
        bytes = before + bytes.slice(Math.floor((one.from * bytes.length) / 1_001));
    }
  }
  return bytes;
}

let runs = 0;

/** Sends all to every service, to a store of its own; throws at the first answer that is wrong. */
export async function endure(
  targets: readonly Target[],
  all: readonly Mangled[],
  counts: Counts,
): Promise<void> {
  const run = `mangled ${process.pid} ${++runs}`;
  const tokens = tokensFor();
  await Promise.all(
    targets.map(async (target) => {
      await keepTokens(target.archive, tokens, (store) => `${store} ${run}`);
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

async function* answersTo({ port }: Target, bytes: Bytes, cuts: readonly number[]) {
  const wire = new Wire(port);
  await wire.writeInPieces(
    bytes,
    cuts.map((cut) => Math.floor((cut * bytes.length) / 1_000)),
  );
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
async function pathsOf({ port }: Target, tokens: Tokens): Promise<string[]> {
  const paths: string[] = [];
  for (const name of ['maria', 'dora']) {
    const wire = new Wire(port);
    wire.write(
      `GET /plants?fields=id,name,tag HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokens[name]}\r\n\r\n`,
    );
    const answer = await wire.answer('GET');
    wire.close();
    assert.equal(answer?.status, 200);
    const plants: { id: number }[] = JSON.parse(Buffer.from(answer.body, 'latin1').toString());
    for (const plant of plants) {
      assert.ok(isPlant(plant), JSON.stringify(plant));
    }
    const ids = plants.map(({ id }) => id);
    assert.deepEqual(
      ids,
      [...new Set(ids)].toSorted((one, other) => one - other),
    );
    paths.push(...ids.map((id) => `/plants/${id}`));
  }
  return paths;
}
