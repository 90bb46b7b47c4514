import { test } from 'node:test';
import { fuzz, fuzzBytes } from './fuzz/fuzz.ts';

const seed = Date.now() % 2 ** 31; // a failure prints its own

test('answers random requests as the contract says, on both storages alike', (t) =>
  fuzz(t, { requests: 3_000, lanes: 4, seed }));

test('answers whatever bytes come, and loses nothing that it acknowledged', (t) =>
  fuzzBytes(t, { requests: 1_500, lanes: 4, seed }));
