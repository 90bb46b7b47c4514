/**
 * The same as fuzz.test.ts for a million requests, a fifth of them mangled: PLANT_STORE_TEST_SEED repeats a run,
 * PLANT_STORE_TEST_REQUESTS sets the number of requests.
 */
import { test } from 'node:test';
import { fuzz, fuzzBytes } from './fuzz/fuzz.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const requests = Number(process.env['PLANT_STORE_TEST_REQUESTS'] ?? 1_000_000);
const bytesPart = 0.2;

test(`responds to random requests as documented (PLANT_STORE_TEST_SEED=${seed})`, (t) =>
  fuzz(t, { requests: requests * (1 - bytesPart), lanes: 16, seed }));

test(`responds correctly to random bytes (PLANT_STORE_TEST_SEED=${seed})`, (t) =>
  fuzzBytes(t, { requests: requests * bytesPart, lanes: 16, seed }));
