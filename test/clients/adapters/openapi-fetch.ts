import createClient from 'openapi-fetch';
import type { paths } from '../.cache/openapi-typescript.ts';
import type { ClientMaker, Outcome, Problem } from '../client.ts';

export const clientOf: ClientMaker = (baseUrl, token) => {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
  return {
    create: async ({ name, id, tag }, fields) =>
      outcome(
        await client.POST('/plants', { body: { name, id, tag }, params: { query: { fields } } }),
      ),
    list: async ({ limit, after, tag, fields } = {}) =>
      outcome(await client.GET('/plants', { params: { query: { limit, after, tag, fields } } })),
    find: async (id, fields) =>
      outcome(await client.GET('/plants/{id}', { params: { path: { id }, query: { fields } } })),
    delete: async (id) =>
      outcome(await client.DELETE('/plants/{id}', { params: { path: { id } } })),
    livez: async () => outcome(await client.GET('/livez')),
  };
};

interface Result<Data> {
  response: Response;
  data?: Data;
  error?: Problem;
}

function outcome<Data>({ response, data, error }: Result<Data>): Outcome<Data> {
  return { status: response.status, data, problem: error };
}
