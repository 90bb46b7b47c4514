/**
 * A user who shares and ends shares, records the responses, and then checks that all acknowledged changes are in
 * effect.
 */
import assert from 'node:assert/strict';
import type { ShareAccess } from '../../src/access/access.ts';

type State = ShareAccess | 'none' | 'unknown';

interface Response {
  status: number;
  /** The kind of problem; empty for a success. */
  kind: string;
  text: string;
}

export interface ShareLedger {
  /** Makes the next change of one of this client's shares. `send` resolves to undefined if there is no response. */
  change(client: number, turn: number, send: Send): Promise<void>;
  /** `given` is what GET /shares returns. Throws if it is missing a share or has one that ended. */
  check(given: readonly { user: string; access: ShareAccess }[]): void;
}

type Send = (method: string, path: string, json?: object) => Promise<Response | undefined>;

const changes = ['read', 'write', 'none', 'none', 'write', 'none', 'read'] as const;
/** The receiver of the shares changes after this many turns. */
const turnsPerReceiver = 10;

export function shareLedger(): ShareLedger {
  const states = new Map<string, State>();
  return {
    async change(client, turn, send) {
      const user = `friend ${client} ${Math.floor(turn / turnsPerReceiver)}`;
      const before = states.get(user) ?? 'none';
      if (before === 'unknown') return; // that change can still take effect
      const access = changes[turn % changes.length] ?? 'none';
      states.set(user, 'unknown');
      const path = `/shares/${encodeURIComponent(user)}`;
      const isEnd = access === 'none';
      const response = await (isEnd ? send('DELETE', path) : send('PUT', path, { access }));
      if (response === undefined || response.kind === 'outcome-unknown') return;
      const { status, text } = response;
      states.set(user, status === 503 ? before : access);
      const [absent, present] = isEnd ? [404, 204] : [201, 200];
      if (status !== 503) assert.equal(status, before === 'none' ? absent : present, text);
    },
    check(given) {
      const found = new Map(given.map(({ user, access }) => [user, access]));
      for (const [user, expected] of states) {
        const state = found.get(user) ?? 'none';
        if (expected !== 'unknown') assert.equal(state, expected, `the share with ${user}`);
        found.delete(user);
      }
      assert.deepEqual([...found.keys()], [], 'no share was not sent');
      const known = [...states.values()].filter((state) => state !== 'unknown');
      assert.ok(known.length > 0, 'some changes of shares were acknowledged');
    },
  };
}
