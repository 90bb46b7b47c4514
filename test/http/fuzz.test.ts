import { test } from 'node:test';
import { fuzz, fuzzBytes } from './fuzz/fuzz.ts';

const seed = Date.now() % 2 ** 31; // a failure prints its own

test('responds to random requests as documented, in the same way on both storages', (t) =>
  fuzz(t, { requests: 1_200, lanes: 4, seed }));

test('responds correctly to random bytes, and loses no acknowledged change', (t) =>
  fuzzBytes(t, { requests: 600, lanes: 4, seed }));
