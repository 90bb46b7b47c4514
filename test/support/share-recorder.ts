/**
 * Clients that share, end shares and read what is shared, in a store of their own, and a check of whether each share
 * is linearizable. A share is a register that its owner and its receiver change. What its receiver can do with the
 * only plant of its owner shows its state.
 */
import assert from 'node:assert/strict';
import { scopes, shareAccesses, type ShareAccess } from '../../src/access/access.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from './app.ts';
import { Client, type Network, type RawRequest, type User } from './client-under-faults.ts';
import { check, type Specification, type Step } from './linearizability.ts';
import { identify } from './tokens.ts';

type State = ShareAccess | 'none';

export type ShareEffect =
  /** `isNew` is undefined if the outcome is unknown. */
  | { readonly kind: 'set'; readonly access: ShareAccess; readonly isNew: boolean | undefined }
  /** `existed` is undefined if the outcome is unknown. */
  | { readonly kind: 'end'; readonly existed: boolean | undefined }
  /** A request showed that the share was in one of these states. */
  | { readonly kind: 'see'; readonly states: readonly State[] };

export const share: Specification<State, ShareEffect> = {
  initial: 'none',
  isRead: ({ kind }) => kind === 'see',
  apply({ effect }, state) {
    const isShared = state !== 'none';
    switch (effect.kind) {
      case 'set':
        return effect.isNew === isShared ? undefined : effect.access;
      case 'end':
        return effect.existed === !isShared ? undefined : 'none';
      case 'see':
        return effect.states.includes(state) ? state : undefined;
    }
  },
};

/** By owner and receiver. */
export type ShareHistory = Map<string, Step<ShareEffect>[]>;

/** Describes each share that is not linearizable. */
export function shareFaultsOf(history: ShareHistory): string[] {
  return [...history].flatMap(([key, steps]) => {
    const fault = check(share, steps);
    return fault === undefined ? [] : `the share ${key} is not linearizable:\n${fault}`;
  });
}

interface ShareStore {
  owners: readonly User[];
  receivers: readonly User[];
}

const clientsPerStore = 4;
/** Many changes, in turn with few, so that caches have time to fill. */
const phaseRequests = 30;

/** The plants of a store belong to its owners, in their order. */
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

interface ShareRequest extends RawRequest {
  /** What the response shows about shares of the receiver. The status is undefined if it is lost. */
  effects(status: number | undefined, body: string): [owner: User, ShareEffect][];
}

/** Sends `requests` requests, or fewer if aborted. */
export async function recordShares(
  network: Network & ShareStore & { requests: number; signal: AbortSignal },
): Promise<ShareHistory> {
  const { owners, receivers, random, count, signal } = network;
  const any = <T>(all: readonly T[]): T => all[random(all.length)] as T; // none is empty
  const history: ShareHistory = new Map();
  let left = network.requests;

  const anyRequest = (owner: User, receiver: User): ShareRequest => {
    const changes = Math.floor(left / phaseRequests) % 2 === 0 ? 60 : 10;
    const kind = random(100);
    if (kind < changes / 2) return set(owner, receiver, any(shareAccesses));
    if (kind < changes) return random(2) === 0 ? end(owner, receiver) : leave(owner, receiver);
    return any(readsOf(owners, owner, receiver));
  };
  const work = async () => {
    using client = new Client(network);
    while (left-- > 0 && !signal.aborted) {
      const [owner, receiver] = [any(owners), any(receivers)];
      const request = anyRequest(owner, receiver);
      const sent = await client.exchange(request);
      if (sent === undefined) continue;
      const { response, failure, isLost, call } = sent;
      const isRead = request.method === 'GET' || request.method === 'PATCH';
      count(`share ${failure === '' ? `${request.method} ${response?.status}` : failure}`);
      if (failure !== '' && (isRead || !isLost)) continue;
      const status = isLost ? undefined : response?.status;
      for (const [of, effect] of request.effects(status, response?.body ?? '')) {
        const key = `${of.name} with ${receiver.name}`;
        const step = { who: request.user, call, end: isLost ? Infinity : sent.end, effect };
        history.set(key, [...(history.get(key) ?? []), step]);
      }
    }
  };
  await Promise.all(Array.from({ length: clientsPerStore }, work));
  return history;
}

function set(owner: User, receiver: User, access: ShareAccess): ShareRequest {
  const effects = (status: number | undefined): [User, ShareEffect][] => {
    const isNew = meaningOf(status, { 201: true, 200: false });
    return [[owner, { kind: 'set', access, isNew }]];
  };
  const target = `/shares/${receiver.name}`;
  return { user: owner, method: 'PUT', target, json: { access }, effects };
}

function end(owner: User, receiver: User): ShareRequest {
  const effects = (status: number | undefined): [User, ShareEffect][] => {
    const existed = meaningOf(status, { 204: true, 404: false });
    return [[owner, { kind: 'end', existed }]];
  };
  return { user: owner, method: 'DELETE', target: `/shares/${receiver.name}`, effects };
}

/** The receiver ends the share. */
function leave(owner: User, receiver: User): ShareRequest {
  return { ...end(owner, receiver), user: receiver, target: `/shares/${owner.name}` };
}

function readsOf(owners: readonly User[], owner: User, user: User): ShareRequest[] {
  const see = (of: User, states: readonly State[] = []): [User, ShareEffect] => [
    of,
    { kind: 'see', states },
  ];
  const byStatus =
    (states: Record<number, readonly State[]>): ShareRequest['effects'] =>
    (status) => [see(owner, meaningOf(status, states))];
  const plant = `/plants/${owners.indexOf(owner) + 1}`;
  return [
    {
      user,
      method: 'GET',
      target: '/plants?fields=id,access',
      effects(_, body) {
        const plants: { id: number; access: ShareAccess }[] = JSON.parse(body);
        return owners.map((of, at) => {
          return see(of, [plants.find(({ id }) => id === at + 1)?.access ?? 'none']);
        });
      },
    },
    {
      user,
      method: 'GET',
      target: '/shares',
      effects(_, body) {
        const shown: { received: { user: string; access: ShareAccess }[] } = JSON.parse(body);
        return owners.map((of) => {
          return see(of, [shown.received.find((one) => one.user === of.name)?.access ?? 'none']);
        });
      },
    },
    {
      user,
      method: 'GET',
      target: plant,
      effects: byStatus({ 200: shareAccesses, 404: ['none'] }),
    },
    {
      // It changes nothing, but only some can.
      user,
      method: 'PATCH',
      target: plant,
      json: { name: owner.name },
      effects: byStatus({ 200: ['write'], 403: ['read'], 404: ['none'] }),
    },
  ];
}

/** Undefined if the response is lost. */
function meaningOf<T>(status: number | undefined, meanings: Record<number, T>): T | undefined {
  if (status === undefined) return undefined;
  assert.ok(status in meanings, `unexpected status ${status}`);
  return meanings[status];
}
