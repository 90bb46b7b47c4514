/**
 * Clients of a service behind a gateway. The tests of a process share the service, and each has a store of its own.
 */
import type { TestContext } from 'node:test';
import { PlantStore, type PlantStoreOptions } from '../../src/client/client.ts';
import type { Storage } from '../../src/storage.ts';
import { override, startApp, type TokenOptions } from '../support/app.ts';
import { startGateway } from '../support/gateway.ts';
import { shared } from '../support/shared.ts';

const service = shared(async (t) => {
  const failures: Error[] = [];
  const wrap = (storage: Storage): Storage =>
    override(storage, {
      plants: {
        async create(...args) {
          const failure = failures.shift();
          if (failure !== undefined) throw failure;
          return storage.plants.create(...args);
        },
      },
    });
  return { app: await startApp(t, { wrap }), failures };
});

let stores = 0;

interface ConnectOptions extends Partial<PlantStoreOptions> {
  /** Those of alice's token. */
  scopes?: TokenOptions['scopes'];
  /** Creating a plant first fails with each of these. */
  failures?: readonly Error[];
  /** The path at which the gateway serves the service. */
  prefix?: string;
}

/** Creates a store, and a client of alice that reaches it through a gateway. */
export async function connect(
  t: TestContext,
  { scopes, failures = [], prefix = '', ...options }: ConnectOptions = {},
) {
  const { app, failures: pending } = service();
  pending.splice(0, Infinity, ...failures);
  const name = `store-${++stores}`;
  const tokenOf = (user: string, more?: TokenOptions) => app.token(user, { store: name, ...more });
  const token = await tokenOf('alice', scopes && { scopes });
  const gateway = await startGateway(t, app.address, { prefix });
  const { plan, requests } = gateway;
  return {
    app,
    gateway,
    plan,
    requests,
    /** The method and the address of every request so far. */
    lines: () => requests.map(({ line }) => line),
    tokenOf,
    token,
    store: new PlantStore({ url: gateway.address, token, ...options }),
    /** A client that does not use the gateway. */
    clientOf: async (user: string, more?: TokenOptions) =>
      new PlantStore({ url: app.address, token: await tokenOf(user, more) }),
  };
}
