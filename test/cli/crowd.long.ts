import { it } from 'node:test';
import { sendAtOnce, writeDuringCommands } from './crowd.ts';

it('64 clients write for long during many commands without lock errors', (t) =>
  writeDuringCommands(t, { clients: 64, plantsEach: 90, tokensMade: 20, backupsTaken: 10 }));

it('2,500 clients with uncached tokens send requests at once, and all get responses', (t) =>
  sendAtOnce(t, 2_500));
