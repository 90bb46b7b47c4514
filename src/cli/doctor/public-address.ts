/**
 * The checks of the public address: what a proxy passes on. Their token is invalid, so they change nothing.
 */
import { once } from 'node:events';
import { connect } from 'node:tls';
import { networkFailure, PlantStoreError } from '../../client/problem.ts';
import type { Check, Finding } from '../../shared/finding.ts';
import { explained } from '../service.ts';

const timeoutMs = 10_000;
const warningMs = 14 * 86_400_000;
const requests = ['GET /token', 'PATCH /plants/1', 'DELETE /plants/1', 'PUT /shares/a%2Fb'];
const fix = 'Use the file for your proxy: docs/how-to/deploy.md#put-a-proxy-in-front';

export function addressChecks(resources: AsyncDisposableStack, baseUrl = ''): Check[] {
  const checks: Check[] = [
    ['address', 'whether the service responds at its public address', reached],
    ['proxy', 'headers, methods and paths that a proxy passes on', passesOn],
    ['certificate', 'when the certificate of the public address ends', certificate],
  ];
  if (baseUrl !== '') return checks;
  return checks.map(([name, about]) => [name, about, () => ['skipped', '--base-url is not set']]);

  async function send(method: string, path: string): Promise<Response> {
    const address = new URL(baseUrl + path);
    const headers = { authorization: 'Bearer doctor', 'accept-encoding': 'identity' };
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await explained(baseUrl, () =>
      fetch(address, { method, headers, redirect: 'manual', signal }).catch((cause: unknown) => {
        throw new PlantStoreError(networkFailure(address, cause), false);
      }),
    );
    await response.body?.cancel(); // otherwise it keeps the process running
    return response;
  }

  async function reached(): Promise<Finding> {
    const { status, headers } = await send('HEAD', '/openapi.json');
    if (status !== 200) return ['fail', `HEAD ${baseUrl}/openapi.json has status ${status}`, fix];
    if (headers.get('etag')?.startsWith('"')) return ['ok', baseUrl];
    return ['warn', 'a proxy weakens or removes ETag, so If-Match does not work', fix];
  }

  /** The service refuses each of the requests itself, for the token. */
  async function passesOn(): Promise<Finding> {
    for (const request of requests) {
      const [method = '', path = ''] = request.split(' ');
      const { status, headers } = await send(method, path);
      if (status === 429) return ['skipped', 'too many requests had an invalid token'];
      const hasSeenToken = headers.get('www-authenticate')?.includes('invalid_token');
      if (status === 401 && hasSeenToken && headers.has('x-request-id')) continue;
      return ['fail', `${request} does not arrive as it was sent: status ${status}`, fix];
    }
    return ['ok', requests.join(', ')];
  }

  async function certificate(): Promise<Finding> {
    await send('HEAD', '/livez'); // fails as above if the certificate is not valid
    const { protocol, hostname, port } = new URL(baseUrl);
    if (protocol === 'http:') return ['skipped', 'the address has no TLS'];
    const host = hostname.replaceAll(/[[\]]/g, ''); // of an IPv6 address
    const socket = connect({ host, port: Number(port || 443) });
    resources.defer(() => void socket.destroy());
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(timeoutMs) });
    const { valid_from: from, valid_to: to } = socket.getPeerCertificate();
    const [lifeMs, leftMs] = [Date.parse(to) - Date.parse(from), Date.parse(to) - Date.now()];
    const isShort = leftMs < Math.min(warningMs, lifeMs / 3); // some are valid for a week
    return [isShort ? 'warn' : 'ok', `it ends at ${to}`, 'Renew it, such as with: certbot renew'];
  }
}
