/**
 * The checks of certificates, and of what a proxy passes on. The token of their requests is invalid, so they change
 * nothing.
 */
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { networkFailure, PlantStoreError } from '../../client/problem.ts';
import type { Check, Finding } from '../../shared/finding.ts';
import { readCertificate, warningOf } from '../serve/certificate.ts';
import type { ServeOptions } from '../serve/options.ts';
import { explained } from '../service.ts';

const timeoutMs = 10_000;
const requests = ['GET /token', 'PATCH /plants/1', 'DELETE /plants/1', 'PUT /shares/a%2Fb'];
const fix = 'Use the file for your proxy: docs/how-to/deploy.md#put-a-proxy-in-front';

export function addressChecks(
  resources: AsyncDisposableStack,
  { baseUrl = '', tlsCert: cert, tlsKey: key }: Partial<ServeOptions>,
): Check[] {
  const ofAddress = (check: () => Promise<Finding>) => () =>
    baseUrl === '' ? (['skipped', '--base-url is not set'] as const) : check();
  return [
    ['tls', 'the certificate and the key of the service itself', tls],
    ['address', 'whether the service responds at its public address', ofAddress(reached)],
    ['proxy', 'headers, methods and paths that a proxy passes on', ofAddress(passesOn)],
    ['certificate', 'when the certificate of the public address ends', ofAddress(certificate)],
  ];

  async function tls(): Promise<Finding> {
    if (cert === undefined || key === undefined) return ['skipped', '--tls-cert is not set'];
    return validityOf(await readCertificate({ cert, key }));
  }

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
      const [isRight, fault] = [
        [status === 401, `does not arrive as it was sent: status ${status}`],
        [hasSeenToken, 'arrives without Authorization, or returns without WWW-Authenticate'],
        [headers.has('x-request-id'), 'returns without X-Request-Id'],
      ].find(([isFine]) => !isFine) ?? [true];
      if (isRight !== true) return ['fail', `${request} ${fault}`, fix];
    }
    return ['ok', requests.join(', ')];
  }

  async function certificate(): Promise<Finding> {
    await send('HEAD', '/livez'); // fails as above if the certificate is not valid
    const { protocol, hostname, port } = new URL(baseUrl);
    if (protocol === 'http:') return ['skipped', 'the address has no TLS'];
    const host = hostname.replaceAll(/[[\]]/g, ''); // of an IPv6 address
    const servername = isIP(host) === 0 ? host : ''; // a proxy can have a certificate for each name
    const socket = connect({ host, port: Number(port || 443), servername });
    resources.defer(() => void socket.destroy());
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(timeoutMs) });
    const shown = socket.getPeerX509Certificate();
    return shown === undefined ? ['fail', 'there is none', fix] : validityOf(shown);
  }
}

function validityOf(certificate: X509Certificate): Finding {
  const days = warningOf(certificate);
  const status = days === 0 ? 'fail' : days === Infinity ? 'ok' : 'warn';
  const detail = `it is valid from ${certificate.validFrom} to ${certificate.validTo}`;
  return [status, detail, 'Renew it, such as with: certbot renew'];
}
