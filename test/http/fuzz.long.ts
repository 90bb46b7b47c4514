import { test } from 'node:test';
import { rounds } from '../support/rounds.ts';
import { fuzz, fuzzBytes } from './fuzz/fuzz.ts';

const load = { requests: 5_000, lanes: 16 };

test('responds to many random requests as documented', (t) =>
  rounds(t, (inner, seed) => fuzz(inner, { ...load, seed })));

test('responds correctly to many random bytes', (t) =>
  rounds(t, (inner, seed) => fuzzBytes(inner, { ...load, seed })));
