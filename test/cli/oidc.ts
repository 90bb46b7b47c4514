import { call } from '../support/app.ts';

/** The service's answer about a token. */
export async function tokenOf(address: string, token: string): Promise<Record<string, unknown>> {
  const { status, json } = await call(`${address}/token`, 'GET', { token });
  return { ...(json as object), status };
}
