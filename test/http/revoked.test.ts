/**
 * A token that is revoked while a request is in progress writes nothing, whatever the request.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import type { Storage } from '../../src/storage.ts';
import openapi from '../../openapi.json' with { type: 'json' };
import { override, startApp } from '../support/app.ts';
import { startProvider } from '../support/provider.ts';
import { findUser, idsOwnedBy } from '../support/scene.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { idOf } from '../support/tokens.ts';

/** A user with two plants, of which one is deleted, a share with carol, and three tokens. */
interface Person {
  name: string;
  plant: number;
  deleted: number;
  token: string;
  ended: string;
  spare: string;
  webhook: string;
}

/** A write, with the status that it has if it is carried out. */
type Write = readonly [
  operation: string,
  path: (person: Person) => string,
  status: number,
  json?: object,
];

const url = 'http://127.0.0.1:9/';

const writes: readonly Write[] = [
  ['POST /plants', () => '/plants', 201, { name: 'new' }],
  ['PATCH /plants/{id}', ({ plant }) => `/plants/${plant}`, 200, { name: 'second' }],
  ['POST /plants/{id}/restore', ({ deleted }) => `/plants/${deleted}/restore`, 200],
  ['DELETE /plants/{id}', ({ plant }) => `/plants/${plant}`, 204],
  ['POST /restore', () => '/restore', 200, { since: '2026-01-01T00:00:00Z' }],
  ['PUT /shares/{user}', () => '/shares/bob', 201, { access: 'read' }],
  ['DELETE /shares/{user}', () => '/shares/carol', 204],
  ['POST /tokens', () => '/tokens', 201, {}],
  ['DELETE /tokens/{tokenId}', ({ spare }) => `/tokens/${idOf(spare)}`, 204],
  ['POST /webhooks', () => '/webhooks', 201, { url }],
  ['DELETE /webhooks/{webhookId}', ({ webhook }) => `/webhooks/${webhook}`, 204],
  ['PUT /team-share', () => '/team-share', 201, { access: 'read' }],
  ['DELETE /team-share', () => '/team-share', 204],
  ['DELETE /token', () => '/token', 204],
];
/** They need a token of the service. */
const withoutJwt = ['POST /tokens', 'DELETE /token', 'POST /webhooks'];
/** A removed user has nothing to put back. */
const withoutEffect = 'POST /restore';
/** They need one of a manager, who can see everything. */
const writesOfManagers: readonly Write[] = [
  ['PUT /users/{user}', () => '/users/erin', 200, { role: 'manager' }],
  ['POST /users/{user}/tokens', () => '/users/erin/tokens', 201, {}],
  ['DELETE /users/{user}', () => '/users/erin', 204],
];

/** Writes without a body wait here until they are released, and others for the last byte of their body. */
class Gate {
  #reached = Promise.withResolvers<void>();
  #held: PromiseWithResolvers<void> | undefined;
  #isBodyHeld = false;

  hold(): Promise<void> {
    this.#reached = Promise.withResolvers<void>();
    this.#held = Promise.withResolvers<void>();
    return this.#reached.promise;
  }

  release(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  wrap(real: Storage): Storage {
    const pass = async () => {
      this.#reached.resolve();
      await this.#held?.promise;
    };
    return override(real, {
      plants: {
        delete: async (...args) => pass().then(() => real.plants.delete(...args)),
        restore: async (...args) => pass().then(() => real.plants.restore(...args)),
      },
      webhooks: { remove: async (...args) => pass().then(() => real.webhooks.remove(...args)) },
      users: {
        beginRemoval: async (...args) => pass().then(() => real.users.beginRemoval(...args)),
      },
      shares: { end: async (...args) => pass().then(() => real.shares.end(...args)) },
      identity: {
        revokeToken: async (id, at, by) => {
          if (by !== undefined) await pass();
          return real.identity.revokeToken(id, at, by);
        },
        identify: async (credential) =>
          real.identity.identify(credential).finally(() => {
            if (this.#isBodyHeld) this.#reached.resolve();
          }),
      },
    });
  }

  /** Sends a write, but not the last byte of its body, does `meanwhile`, and resolves to the response. */
  async send(
    port: number,
    token: string,
    [operation, path, , json]: Write,
    person: Person,
    meanwhile: () => Promise<unknown>,
  ) {
    const body = json && JSON.stringify(json);
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': body.length,
      }),
    };
    const [method = ''] = operation.split(' ');
    const sent = request({ port, method, path: path(person), headers });
    const responded = once(sent, 'response');
    this.#isBodyHeld = body !== undefined;
    const reached = this.hold();
    if (body === undefined) sent.end();
    else sent.write(body.slice(0, -1));
    await reached;
    await meanwhile();
    this.release();
    if (body !== undefined) sent.end(body.slice(-1));
    const [response] = await responded;
    const challenge: string | undefined = response.headers['www-authenticate'];
    return { status: Number(response.statusCode), challenge, text: await textOf(response) };
  }
}

const gate = new Gate();
const scope = fileScope();
const provider = await startProvider(scope);
const app = await startApp(scope, {
  verifier: new Verifier(provider.options()),
  webhookNetworks: ['127.0.0.0/8'],
  wrap: (storage) => gate.wrap(storage),
});
const { call, storage } = app;

async function newPerson(name: string): Promise<Person> {
  const createOne = () => app.token(name, { scopes });
  const [token, ended, spare] = [await createOne(), await createOne(), await createOne()];
  const createPlant = async () => {
    const created = await call('POST', '/plants?fields=id', { token, json: { name: 'first' } });
    assert.equal(created.status, 201);
    return (created.json as { id: number }).id;
  };
  const [plant, deleted] = [await createPlant(), await createPlant()];
  assert.equal((await call('DELETE', `/plants/${deleted}`, { token })).status, 204);
  const share = await call('PUT', '/shares/carol', { token, json: { access: 'read' } });
  assert.equal(share.status, 201);
  const { json } = await call('POST', '/webhooks', { token, json: { url } });
  const { id: webhook } = json as { id: string }; // a webhook
  return { name, token, ended, spare, plant, deleted, webhook };
}

/** What a user sees of the store. */
async function stateOf({ token }: Person) {
  const see = async (target: string) => (await call('GET', target, { token })).json;
  const tokens = (await see('/tokens')) as { id: string; state: string }[]; // the service has sent it
  return {
    plants: await see('/plants?fields=id,name'),
    shares: await see('/shares'),
    teamShare: await see('/team-share'),
    webhooks: ((await see('/webhooks')) as { id: string }[]).map(({ id }) => id),
    tokens: new Map(tokens.map(({ id, state }) => [id, state])),
  };
}

const refused = { status: 401, challenge: 'Bearer error="invalid_token"' };

describe('a write in progress', () => {
  void test('is tested for every operation that writes', () => {
    const reading = ['get', 'head', 'options', 'parameters'];
    /** It stores nothing that a user has sent. */
    const notTested = 'POST /webhooks/{webhookId}/test';
    const documented = Object.entries(openapi.paths).flatMap(([path, item]) =>
      Object.keys(item).flatMap((method) =>
        reading.includes(method) ? [] : `${method.toUpperCase()} ${path}`,
      ),
    );
    const tested = [...writes, ...writesOfManagers].map(([operation]) => operation);
    assert.deepEqual([...tested, notTested].toSorted(), documented.toSorted());
  });

  it('is refused if its token is revoked, and changes nothing', async () => {
    for (const write of writes) {
      const [operation] = write;
      const alice = await newPerson(`alice at ${operation.replaceAll('/', ' ')}`);
      const before = await stateOf(alice);
      const id = idOf(alice.ended);
      const response = await gate.send(app.port, alice.ended, write, alice, () =>
        storage.identity.revokeToken(id, Date.now()),
      );
      assert.partialDeepStrictEqual(response, refused, write[0]);
      assert.match(response.text, /The token is revoked/);
      before.tokens.set(id, 'revoked');
      assert.deepEqual(await stateOf(alice), before, write[0]);
    }
  });

  it('of a manager is refused if its token is revoked, or the user is no manager any more', async () => {
    for (const [at, write] of writesOfManagers.entries()) {
      await app.token('erin');
      const boss = `boss ${at}`;
      const manage = () => app.token(boss, { scopes, role: 'manager' });
      const people = async (token: string) => (await call('GET', '/users', { token })).text;
      const [token, other] = [
        await manage(),
        await app.token('other boss', { scopes, role: 'manager' }),
      ];
      const person = { ...(await newPerson(`fay ${at}`)), name: boss };
      const before = await people(other);
      const demoted = await gate.send(app.port, token, write, person, () =>
        app.token(boss, { role: 'member' }),
      );
      assert.equal(demoted.status, 403, write[0]);
      await manage();
      const revoked = await gate.send(app.port, token, write, person, () =>
        storage.identity.revokeToken(idOf(token), Date.now()),
      );
      assert.partialDeepStrictEqual(revoked, refused, write[0]);
      assert.equal(await people(other), before, write[0]);
    }
  });

  it('is carried out if only a token of somebody else is revoked', async () => {
    const alice = await newPerson('alice');
    for (const write of writes) {
      const bobs = await app.token('bob');
      const response = await gate.send(app.port, alice.ended, write, alice, () =>
        storage.identity.revokeToken(idOf(bobs), Date.now()),
      );
      assert.equal(response.status, write[2], `${write[0]}: ${response.text}`);
    }
  });

  it('is refused if the user of its JWT is removed', async () => {
    await app.token('dave');
    const dave = await findUser(storage, 'main', 'dave');
    const others = [...withoutJwt, withoutEffect];
    for (const [at, write] of writes.filter(([name]) => !others.includes(name)).entries()) {
      const alice = await newPerson(`alice ${at}`);
      const iat = Math.floor(Date.now() / 1_000) - 60;
      const jwt = await provider.sign({ sub: alice.name, scope: scopes.join(' '), iat });
      const response = await gate.send(app.port, jwt, write, alice, async () => {
        const user = await findUser(storage, 'main', alice.name);
        while ((await storage.users.endAccess(user, Date.now(), 10)) > 0);
        await storage.users.movePlants(user, dave.user, 10);
        assert.ok(await storage.users.remove(user, Date.now()));
      });
      assert.partialDeepStrictEqual(response, refused, write[0]);
      const owned = await idsOwnedBy(storage, dave);
      assert.ok(owned.includes(alice.plant), write[0]);
      assert.equal(owned.length, at + 1);
    }
  });

  it('changes no plant of others if its user is no manager any more', async () => {
    const alice = await newPerson('anna');
    for (const write of writes.filter(([name]) => name.includes('/plants/{id}'))) {
      const eve = await app.token('eve', { role: 'manager' });
      const response = await gate.send(app.port, eve, write, alice, () =>
        app.token('eve', { role: 'member' }),
      );
      assert.equal(response.status, 404, write[0]);
      assert.deepEqual((await stateOf(alice)).plants, [{ id: alice.plant, name: 'first' }]);
    }
  });
});
