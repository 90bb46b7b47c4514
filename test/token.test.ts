import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import {
  hashToken,
  isToken,
  makeToken,
  rangeOf,
  redactTokens,
  storeOf,
  tokenHashBytes,
  tokenId,
} from '../src/access/token.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const character = fc.constantFrom(...alphabet.split(''));
const stores = fc.maxSafeNat();
const tokens = stores.map((store) => makeToken(store));

/** The value of base62 text, computed independently of the code under test. */
function valueOf(text: string): bigint {
  return Array.from(text).reduce((sum, one) => sum * 62n + BigInt(alphabet.indexOf(one)), 0n);
}

it('a token is plant_, its store in 9 base62 characters, 32 bytes in 43, and their CRC-32 in 6', () => {
  fc.assert(
    fc.property(stores, (store) => {
      const token = makeToken(store);
      const [, body = '', route = '', secret = '', checksum = ''] =
        /^plant_(([0-9A-Za-z]{9})([0-9A-Za-z]{43}))([0-9A-Za-z]{6})$/.exec(token) ?? [];
      assert.equal(valueOf(route), BigInt(store));
      assert.ok(isToken(token));
      assert.equal(storeOf(token), store);
      assert.ok(valueOf(secret) < 2n ** 256n);
      assert.equal(valueOf(checksum), BigInt(crc32(body)));
    }),
  );
});

it('tokens differ, and use the whole range of 32 bytes', () => {
  const made = Array.from({ length: 2_000 }, () => makeToken(1));
  assert.equal(new Set(made).size, made.length);
  const values = made.map((token) => valueOf(token.slice(15, 58)));
  assert.ok(
    values.some((value) => value < 2n ** 251n),
    'small ones keep their leading zeros',
  );
  assert.ok(values.some((value) => value > 2n ** 255n));
});

it('detects every change of a single character', () => {
  const token = makeToken(2 ** 47 + 1);
  for (let at = 0; at < token.length; at++) {
    for (const other of `${alphabet}_-. é🌱`) {
      if (other === token[at]) continue;
      const typo = token.slice(0, at) + other + token.slice(at + 1);
      assert.ok(!isToken(typo), typo);
    }
  }
});

it('rejects swapped neighbours, a character more or less, and any made-up text', () => {
  const at = fc.integer({ min: 6, max: 62 });
  fc.assert(
    fc.property(tokens, at, character, (token, place, more) => {
      const [before, after] = [token.slice(0, place), token.slice(place + 1)];
      const [one = '', two = ''] = token.slice(place, place + 2);
      if (one !== two) assert.ok(!isToken(before + two + one + after.slice(1)));
      for (const text of [before + more + one + after, token + more, before + after])
        assert.ok(!isToken(text), text);
    }),
  );
  const secret = fc.string({ unit: character, minLength: 58, maxLength: 58 });
  fc.assert(fc.property(secret, (text) => !isToken(`plant_${text}`)));
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => !isToken(text)));
  const token = makeToken(1);
  const shorter = `plant_${token.slice(15)}`;
  for (const text of ['', 'plant_', ` ${token}`, `${token}\n`, token + token, shorter])
    assert.ok(!isToken(text), JSON.stringify(text));
  assert.ok(!isToken(token.toUpperCase()));
});

it('the hash is SHA-256 of the text, and the id the store and the first 8 bytes of the hash', () => {
  fc.assert(
    fc.property(tokens, (token) => {
      const hex = createHash('sha256').update(token, 'utf8').digest('hex');
      const hash = hashToken(token);
      assert.equal(hash.toString('hex'), hex);
      assert.equal(hash.length, tokenHashBytes);
      const store = storeOf(token);
      const id = tokenId(hash, store);
      assert.equal(id, `${token.slice(6, 15)}-${hex.slice(0, 16)}`);
      const range = rangeOf(id);
      assert.ok(range);
      assert.equal(range.store, store);
      assert.ok(Buffer.compare(range.first, hash) <= 0 && Buffer.compare(hash, range.last) <= 0);
      assert.equal(tokenId(range.first, store), id);
      assert.equal(tokenId(range.last, store), id);
    }),
  );
});

it('removes tokens and JWTs from a text, in linear time', () => {
  const jwt = 'eyJhbGciOiJub25l.eyJzdWIiOiJh.c2ln';
  assert.equal(redactTokens(`"${makeToken(1)}" and ${jwt}`), '"plant_..." and eyJ...');
  assert.equal(redactTokens(`xeyJ_${jwt}?x.${jwt}.y`), 'xeyJ...?x.eyJ....y');
  assert.equal(redactTokens('eyJhbGci.eyJzdWIi'), 'eyJhbGci.eyJzdWIi');
  // In quadratic time, these take minutes.
  for (const text of ['eyJ'.repeat(200_000), 'plant_'.repeat(100_000)]) {
    const startedMs = performance.now();
    for (const end of ['', '.', '.eyJ']) assert.equal(redactTokens(text + end), text + end);
    assert.ok(performance.now() - startedMs < 5_000);
  }
});
