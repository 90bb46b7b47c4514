import { createClient } from '../.cache/hey-api/client/index.ts';
import * as sdk from '../.cache/hey-api/sdk.gen.ts';
import type { ClientMaker, Outcome, Problem } from '../client.ts';

export const clientOf: ClientMaker = (baseUrl, auth) => {
  const client = createClient({ baseUrl, auth });
  return {
    create: async ({ name, id, tag }, fields) =>
      outcome(await sdk.createPlant({ client, body: { name, id, tag }, query: { fields } })),
    list: async ({ limit, after, tag, fields } = {}) =>
      outcome(await sdk.listPlants({ client, query: { limit, after, tag, fields } })),
    find: async (id, fields) =>
      outcome(await sdk.getPlant({ client, path: { id }, query: { fields } })),
    delete: async (id) => outcome(await sdk.deletePlant({ client, path: { id } })),
    livez: async () => outcome(await sdk.livez({ client })),
  };
};

interface Result<Data> {
  response?: Response;
  data?: Data;
  error?: Problem;
}

function outcome<Data>({ response, data, error }: Result<Data>): Outcome<Data> {
  return { status: response?.status, data, problem: error };
}
