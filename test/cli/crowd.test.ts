import { it } from 'node:test';
import { sendAtOnce, writeDuringCommands } from './crowd.ts';

it('64 clients write during token creation and backups without lock errors', (t) =>
  writeDuringCommands(t, { clients: 64, plantsEach: 6, tokensMade: 2, backupsTaken: 1 }));

it('300 clients with uncached tokens send requests at once, and all get responses', (t) =>
  sendAtOnce(t, 300));
