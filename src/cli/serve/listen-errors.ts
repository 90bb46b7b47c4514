/**
 * Why `serve` cannot listen on its address.
 */
import { Refusal } from '../../refusal.ts';
import { hostAndPort } from './announce.ts';
import type { ServeOptions } from './options.ts';

const reasons: Record<string, string> = {
  EADDRINUSE: 'the port is in use. Choose another with --port, or 0 for a free one',
  EACCES: 'permission denied. Choose a port above 1023 with --port',
  EADDRNOTAVAIL: 'this machine does not have that address. Choose another with --host',
  EAI_AGAIN: 'the host name cannot be resolved. Choose another with --host',
  ENOTFOUND: 'the host name cannot be resolved. Choose another with --host',
};

/** Returns a handler for a failure to listen, which refuses for these reasons. */
export function refuseListenError({ host, port }: ServeOptions) {
  return (cause: NodeJS.ErrnoException): never => {
    const reason = reasons[cause.code ?? ''];
    if (reason === undefined) throw cause;
    throw new Refusal(`Cannot listen on ${hostAndPort(host, port)}: ${reason}.`, { cause });
  };
}
