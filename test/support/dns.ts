/**
 * A DNS server on 127.0.0.1 that gives every name the same IPv4 addresses.
 */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

const typeA = 1;

/** Resolves to what asks it. `addresses` can change. It can ignore queries for addresses of IPv6. */
export async function startDns(
  t: Pick<TestContext, 'after'>,
  addresses: readonly string[],
  hasIPv6 = true,
): Promise<Resolver> {
  const server = createSocket('udp4');
  server.on('message', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5; // after the name: a zero, and the type and the class
    const isIPv4 = query.readUInt16BE(end - 4) === typeA;
    if (!isIPv4 && !hasIPv6) return;
    const answers = isIPv4 ? addresses : [];
    const head = Buffer.from([
      ...query.subarray(0, 2),
      0x81,
      0x80,
      0,
      1,
      0,
      answers.length,
      0,
      0,
      0,
      0,
    ]);
    const records = answers.map((one) =>
      Buffer.from([0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4, ...one.split('.').map(Number)]),
    );
    server.send(Buffer.concat([head, query.subarray(12, end), ...records]), port, address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  return resolver;
}
