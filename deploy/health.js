// The health check of the image: exits with 0 if the service of this container is ready. It needs no settings, because
// the service locks its address with a socket of that name (src/http/server/listen.ts).
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

// Processes of other users cannot be read, and some end meanwhile, or close a connection.
const sockets = new Set();
for (const pid of readdirSync('/proc')) {
  for (const fd of attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
    sockets.add(attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`)));
  }
}
const locks = readFileSync('/proc/net/unix', 'utf8').matchAll(/ (\d+) @plant-store (\S+):(\d+)$/gm);
// With the network of the host, there can be services of other containers.
const [lock, , host, port] = locks.find(([, inode]) => sockets.has(`socket:[${inode}]`)) ?? [];
if (lock === undefined) {
  console.error('No service is listening in this container.');
  process.exit(1);
}
const plain = await statusOf(getHttp);
const status = plain === 400 ? await statusOf(getHttps) : plain; // for plain HTTP to a service with TLS
process.exit(status === 200 ? 0 : 1);

function attempt(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Undefined without a response. */
function statusOf(get) {
  return new Promise((resolve) => {
    // The certificate has the names that clients use.
    const options = { host, port, path: '/readyz', timeout: 5_000, rejectUnauthorized: false };
    const request = get(options, ({ statusCode }) => resolve(statusCode));
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(undefined));
  });
}
