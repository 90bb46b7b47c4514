/**
 * Clients that share, end shares and read what is shared, in a store of their own, and a check of whether each share
 * is linearizable. A share is a register that its owner and its receiver change. Reads of the owner's plants show
 * its state, because some of these plants are never deleted.
 */
import assert from 'node:assert/strict';
import { scopes, shareAccesses, type ShareAccess } from '../../src/access/access.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from './app.ts';
import { checkAgainst, type Specification, type StepOf } from './linearizability.ts';
import { Client, type Network, type Sent, type User } from './recorder.ts';
import { identify } from './tokens.ts';

type State = ShareAccess | 'none';

export type ShareEffect =
  /** `isNew` is undefined if the outcome is unknown. */
  | { readonly kind: 'set'; readonly access: ShareAccess; readonly isNew: boolean | undefined }
  /** `existed` is undefined if the outcome is unknown. */
  | { readonly kind: 'end'; readonly existed: boolean | undefined }
  /** A request showed that the share was in one of these states. */
  | { readonly kind: 'see'; readonly states: readonly State[] };

export const shareRegister: Specification<State, ShareEffect> = {
  initial: 'none',
  isRead: ({ kind }) => kind === 'see',
  apply({ effect }, state) {
    switch (effect.kind) {
      case 'set':
        return effect.isNew === undefined || effect.isNew === (state === 'none')
          ? effect.access
          : undefined;
      case 'end':
        return effect.existed === undefined || effect.existed === (state !== 'none')
          ? 'none'
          : undefined;
      case 'see':
        return effect.states.includes(state) ? state : undefined;
    }
  },
};

/** By owner and receiver. */
export type ShareHistory = Map<string, StepOf<ShareEffect>[]>;

interface ShareStore {
  owners: readonly User[];
  receivers: readonly User[];
}

export const clientsPerShareStore = 4;
/** Many changes, in turn with few, so that caches have time to fill. */
const phaseRequests = 30;

/** The first plants of a store belong to its owners, in their order. */
export async function makeShareStore(storage: Storage, store: string): Promise<ShareStore> {
  const make = async (name: string) => {
    const token = await addToken(storage, name, { store, scopes });
    return { name, token, isManager: false };
  };
  const owners = [await make('alice'), await make('bob')];
  const receivers = [await make('carol'), await make('dora')];
  for (const [at, { name, token }] of owners.entries()) {
    const grant = await identify(storage, token);
    assert.ok(grant);
    await storage.plants.create(grant.caller, { id: at + 1, name });
  }
  return { owners, receivers };
}

/** Describes each share that is not linearizable. */
export function shareFaultsOf(history: ShareHistory): string[] {
  return [...history].flatMap(([key, steps]) => {
    const verdict = checkAgainst(shareRegister, steps);
    return verdict === undefined ? [] : `the share ${key} is not linearizable:\n${verdict}`;
  });
}

/** Sends `requests` requests, or fewer if aborted. */
export async function recordShares(
  network: Network & ShareStore & { requests: number; signal: AbortSignal },
): Promise<ShareHistory> {
  const { owners, receivers, random, count, signal } = network;
  const any = <T>(all: readonly T[]): T => all[random(all.length)] as T; // none is empty
  const history: ShareHistory = new Map();
  let left = network.requests;

  const append = (sent: Sent, who: User, owner: User, receiver: User, effect: ShareEffect) => {
    const isUnknown = effect.kind !== 'see' && sent.failure !== '';
    const key = `${owner.name} with ${receiver.name}`;
    const steps = history.get(key) ?? [];
    steps.push({ who, call: sent.call, end: isUnknown ? Infinity : sent.end, effect });
    history.set(key, steps);
  };

  /** Undefined if it failed, and for a change, if it had no effect. */
  async function send(client: Client, user: User, method: string, path: string, json?: object) {
    const sent = await client.exchange(bytesOf(user, method, path, json));
    if (sent === undefined) return undefined;
    const { response, failure } = sent;
    count(`share ${failure === '' ? `${method} ${response?.status}` : failure}`);
    const isUnknown = failure === 'no response' || failure === 'outcome-unknown';
    return failure === '' || (isUnknown && method !== 'GET')
      ? { ...sent, status: response?.status, body: response?.body ?? '' }
      : undefined;
  }

  async function share(client: Client, owner: User, receiver: User): Promise<void> {
    const access = any(shareAccesses);
    const sent = await send(client, owner, 'PUT', `/shares/${receiver.name}`, { access });
    if (sent === undefined) return;
    if (sent.failure === '') assert.ok(sent.status === 200 || sent.status === 201, sent.body);
    const isNew = sent.failure === '' ? sent.status === 201 : undefined;
    append(sent, owner, owner, receiver, { kind: 'set', access, isNew });
  }

  async function unshare(client: Client, owner: User, receiver: User): Promise<void> {
    const [who, other] = random(2) === 0 ? [owner, receiver] : [receiver, owner];
    const sent = await send(client, who, 'DELETE', `/shares/${other.name}`);
    if (sent === undefined) return;
    if (sent.failure === '') assert.ok(sent.status === 204 || sent.status === 404, sent.body);
    const existed = sent.failure === '' ? sent.status === 204 : undefined;
    append(sent, who, owner, receiver, { kind: 'end', existed });
  }

  const seen = (isShared: boolean): ShareEffect => ({
    kind: 'see',
    states: isShared ? shareAccesses : ['none'],
  });

  /** One request shows the shares of all owners. */
  async function list(client: Client, receiver: User): Promise<void> {
    const path = `/plants?fields=id&limit=${any([20, 100])}`;
    const sent = await send(client, receiver, 'GET', path);
    if (sent === undefined) return;
    assert.equal(sent.status, 200, sent.body);
    const ids = (JSON.parse(sent.body) as { id: number }[]).map(({ id }) => id);
    for (const [at, owner] of owners.entries()) {
      append(sent, receiver, owner, receiver, seen(ids.includes(at + 1)));
    }
  }

  async function find(client: Client, receiver: User, owner: User): Promise<void> {
    const sent = await send(client, receiver, 'GET', `/plants/${owners.indexOf(owner) + 1}`);
    if (sent !== undefined) append(sent, receiver, owner, receiver, seen(sent.status === 200));
  }

  async function show(client: Client, receiver: User): Promise<void> {
    const sent = await send(client, receiver, 'GET', '/shares');
    if (sent === undefined) return;
    const shown: { received: { user: string; access: ShareAccess }[] } = JSON.parse(sent.body);
    for (const owner of owners) {
      const received = shown.received.find(({ user }) => user === owner.name);
      const states = [received?.access ?? 'none'] as const;
      append(sent, receiver, owner, receiver, { kind: 'see', states });
    }
  }

  /** The receiver deletes a plant that nobody else knows. */
  async function remove(client: Client, receiver: User, owner: User): Promise<void> {
    const created = await send(client, owner, 'POST', '/plants?fields=id', { name: 'probe' });
    if (created?.status !== 201) return;
    const { id }: { id: number } = JSON.parse(created.body);
    const sent = await send(client, receiver, 'DELETE', `/plants/${id}`);
    if (sent === undefined || sent.failure !== '') return;
    const states: readonly State[] = sent.status === 204 ? ['write'] : ['none', 'read'];
    append(sent, receiver, owner, receiver, { kind: 'see', states });
    if (sent.status !== 204) await send(client, owner, 'DELETE', `/plants/${id}`);
  }

  const work = async () => {
    using client = new Client(network);
    while (left-- > 0 && !signal.aborted) {
      const [owner, receiver] = [any(owners), any(receivers)];
      const changes = Math.floor(left / phaseRequests) % 2 === 0 ? 60 : 10;
      const kind = random(100);
      if (kind < changes / 2) await share(client, owner, receiver);
      else if (kind < changes) await unshare(client, owner, receiver);
      else await any([list, list, find, show, remove])(client, receiver, owner);
    }
  };
  await Promise.all(Array.from({ length: clientsPerShareStore }, work));
  return history;
}

function bytesOf(user: User, method: string, path: string, json?: object): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${user.token}\r\n`;
  if (json === undefined) return `${head}\r\n`;
  const body = JSON.stringify(json);
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
