/**
 * Counts and logs each request when it ends, also if its client left before the response.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Level, Logger } from 'pino';
import type { Grant } from '../../access/access.ts';
import { countRequest, metrics } from '../../metrics/metrics.ts';

/** As nginx logs it: the client left before the response. */
const clientClosedRequest = 499;

/** W3C Trace Context, section 3.2. Only a version after 00 can have more behind the flags. */
const traceContext =
  /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|(?<!^00.{53})-)/;

/** Returns what to call at the start of each request. */
export function observerOf(log: Logger, level: Level) {
  const isLogged = log.isLevelEnabled(level);
  return (request: FastifyRequest, { raw: response }: FastifyReply): void => {
    const startMs = performance.now();
    metrics.http_server_active_requests++;
    response.on('close', () => {
      metrics.http_server_active_requests--;
      const ms = performance.now() - startMs;
      const status = response.headersSent ? response.statusCode : clientClosedRequest;
      const { id: requestId, method, headers } = request;
      // Instead of the URL, because a query can contain plant data.
      const { url: route } = request.routeOptions;
      countRequest(method, route ?? 'unknown', status, ms);
      if (!isLogged) return;
      const { userName: user, tokenId: token } = (request.grant as Grant | undefined) ?? {}; // not all routes have one
      const traceId = traceContext.exec(String(headers.traceparent))?.[1];
      const roundedMs = Math.round(ms * 1_000) / 1_000;
      log[level]({ requestId, method, route, status, ms: roundedMs, user, token, traceId });
    });
  };
}
