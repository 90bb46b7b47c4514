import { it } from 'node:test';
import { rounds } from '../support/rounds.ts';
import { interrupted } from './import.ts';

it('an interrupted import adds each row once', (t) => rounds(t, interrupted));
