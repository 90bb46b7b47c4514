/**
 * Counts and logs each request when it ends, also if its client left before the response.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Level, Logger } from 'pino';
import type { Grant } from '../../access/access.ts';
import { countRequest, gauges } from '../../metrics/process.ts';

/** As nginx logs it: the client left before the response. */
const clientClosedRequest = 499;

/** Call the function that it returns once for each request, at its start. Undefined if nothing wants to know. */
export function observerOf(log: Logger, level: Level, isMeasured: boolean) {
  const isLogged = log.isLevelEnabled(level);
  if (!isLogged && !isMeasured) return undefined;

  return (request: FastifyRequest, { raw: response }: FastifyReply): void => {
    const startMs = performance.now();
    gauges.activeRequests++;
    response.once('close', () => {
      gauges.activeRequests--;
      const ms = performance.now() - startMs;
      const status = response.headersSent ? response.statusCode : clientClosedRequest;
      // The route instead of the URL, because a query can contain plant data.
      const { method } = request;
      const { url: route } = request.routeOptions;
      if (isMeasured) countRequest(method, route, status, ms / 1_000);
      if (!isLogged) return;
      const { userName: user, tokenId: token } = (request.grant as Grant | undefined) ?? {}; // not all routes have one
      log[level]({
        requestId: request.id,
        method,
        route,
        status,
        ms: Math.round(ms * 1_000) / 1_000,
        user,
        token,
        traceId: traceIdOf(request.headers.traceparent),
      });
    });
  };
}

/** W3C Trace Context, section 3.2. Only a later version can have more after the flags. */
const traceContext =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/** Undefined without a valid header. */
function traceIdOf(header: string | string[] = ''): string | undefined {
  const [, version, traceId, more] = traceContext.exec(String(header)) ?? [];
  return version === '00' && more !== undefined ? undefined : traceId;
}
