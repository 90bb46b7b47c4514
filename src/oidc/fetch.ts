/**
 * Fetches what the identity provider publishes. Time and bytes are limited, and redirects are refused, because the
 * provider or a network in between may be broken or hostile.
 */

/** Time from the start of one fetch to the next, and so the maximum time to fetch the metadata and the keys. */
export const fetchIntervalMs = 3_000;
/** Maximum size of a response, uncompressed. */
const maxResponseBytes = 256 * 1024;

/** Fetches the set of keys (RFC 7517), as parsed JSON. Throws if the provider does not respond as it should. */
export async function fetchKeys(issuer: string): Promise<unknown> {
  const signal = AbortSignal.timeout(fetchIntervalMs);
  try {
    // The path that OpenID Connect Discovery defines.
    const metadataAddress = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const metadata: Record<string, unknown> = Object(await fetchJson(metadataAddress, signal));
    const { issuer: named, jwks_uri: address } = metadata;
    if (named !== issuer) throw new Error(`the issuer of the metadata is ${JSON.stringify(named)}`);
    // A provider elsewhere must not make the service send requests to this machine.
    const isOnSameNetwork = String(address).startsWith(`${new URL(issuer).protocol}//`);
    if (typeof address !== 'string' || !isProtected(address) || !isOnSameNetwork) {
      throw new Error(`the jwks_uri of the metadata is ${JSON.stringify(address)}`);
    }
    return await fetchJson(address, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    const reason = `the provider does not respond within ${fetchIntervalMs / 1_000} s`;
    throw new Error(reason, { cause: error });
  }
}

/** Whether responses from this URL are safe from tampering on the network: it is HTTPS, or on this machine. */
export function isProtected(address: string): boolean {
  const url = URL.parse(address);
  if (url?.protocol === 'https:') return true;
  return url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
}

async function fetchJson(address: string, signal: AbortSignal): Promise<unknown> {
  const headers = { accept: 'application/json' };
  const response = await fetch(address, { headers, signal, redirect: 'error' });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    throw new Error(`${address} responds with status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) throw new Error(`${address} sends too much`); // this cancels the rest
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}
