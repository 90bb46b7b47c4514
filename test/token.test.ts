import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import {
  hashToken,
  isToken,
  makeToken,
  redactTokens,
  tokenHashBytes,
  tokenId,
} from '../src/token.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const character = fc.constantFrom(...alphabet.split(''));
const tokens = fc.constant(undefined).map(() => makeToken());

/** The value of base62 text, computed independently of the code under test. */
function valueOf(text: string): bigint {
  return Array.from(text).reduce((sum, one) => sum * 62n + BigInt(alphabet.indexOf(one)), 0n);
}

it('a token is plant_, 43 base62 characters of 32 bytes, and 6 of their CRC-32', () => {
  for (let round = 0; round < 200; round++) {
    const [, secret = '', checksum = ''] =
      /^plant_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(makeToken()) ?? [];
    assert.ok(valueOf(secret) < 2n ** 256n);
    assert.equal(valueOf(checksum), BigInt(crc32(secret)));
  }
});

it('tokens differ, and use the whole range of 32 bytes', () => {
  const made = Array.from({ length: 2_000 }, makeToken);
  assert.equal(new Set(made).size, made.length);
  const values = made.map((token) => valueOf(token.slice(6, 49)));
  assert.ok(
    values.some((value) => value < 2n ** 251n),
    'small ones keep their leading zeros',
  );
  assert.ok(values.some((value) => value > 2n ** 255n));
});

it('makes valid tokens', () => {
  fc.assert(fc.property(tokens, (token) => isToken(token)));
});

it('detects every change of a single character', () => {
  const token = makeToken();
  for (let at = 0; at < token.length; at++) {
    for (const other of `${alphabet}_-. é🌱`) {
      if (other === token[at]) continue;
      const typo = token.slice(0, at) + other + token.slice(at + 1);
      assert.ok(!isToken(typo), typo);
    }
  }
});

it('detects two swapped neighbours', () => {
  const secretChars = fc.integer({ min: 6, max: 53 });
  fc.assert(
    fc.property(tokens, secretChars, (token, at) => {
      const [one = '', two = ''] = token.slice(at, at + 2);
      fc.pre(one !== two);
      return !isToken(token.slice(0, at) + two + one + token.slice(at + 2));
    }),
  );
});

it('rejects a token with a character more or less', () => {
  fc.assert(
    fc.property(tokens, fc.nat(55), character, (token, at, more) => {
      assert.ok(!isToken(token.slice(0, at) + more + token.slice(at)));
      assert.ok(!isToken(token.slice(0, at) + token.slice(at + 1)) || at === 55);
    }),
  );
});

it('rejects any other text', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => !isToken(text)));
  const token = makeToken();
  for (const text of [
    '',
    'plant_',
    ` ${token}`,
    `${token}\n`,
    token.toUpperCase(),
    token + token,
  ]) {
    assert.ok(!isToken(text), JSON.stringify(text));
  }
});

it('rejects a made-up secret by its checksum', () => {
  const secret = fc.string({ unit: character, minLength: 49, maxLength: 49 });
  fc.assert(fc.property(secret, (text) => !isToken(`plant_${text}`)));
});

it('the hash is SHA-256 of the text, and the id its first 8 bytes', () => {
  fc.assert(
    fc.property(tokens, (token) => {
      const hex = createHash('sha256').update(token, 'utf8').digest('hex');
      assert.equal(hashToken(token).toString('hex'), hex);
      assert.equal(hashToken(token).length, tokenHashBytes);
      assert.equal(tokenId(hashToken(token)), hex.slice(0, 16));
    }),
  );
});

it('removes tokens and JWTs from a text, in linear time', () => {
  const jwt = 'eyJhbGciOiJub25l.eyJzdWIiOiJh.c2ln';
  assert.equal(redactTokens(`"${makeToken()}" and ${jwt}`), '"plant_..." and eyJ...');
  assert.equal(redactTokens(`xeyJ_${jwt}?x.${jwt}.y`), 'xeyJ...?x.eyJ....y');
  assert.equal(redactTokens('eyJhbGci.eyJzdWIi'), 'eyJhbGci.eyJzdWIi');
  // In quadratic time, these take minutes.
  for (const text of ['eyJ'.repeat(200_000), 'plant_'.repeat(100_000)]) {
    const startedMs = performance.now();
    for (const end of ['', '.', '.eyJ']) assert.equal(redactTokens(text + end), text + end);
    assert.ok(performance.now() - startedMs < 5_000);
  }
});
