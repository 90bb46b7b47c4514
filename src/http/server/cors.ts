/**
 * Lets web pages of named origins use the service (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol). Browsers
 * are never told to send credentials: a page sends a token in a header, as every other client does.
 *
 * Requests that node:http cannot parse get a problem without these headers, because their origin is unknown.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The headers of responses that a page can read, in addition to those that it always can. */
const exposedHeaders =
  'Accept-Patch, Change-Position, ETag, Idempotent-Replayed, Link, Location, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Total-Count, WWW-Authenticate';

/**
 * The headers that a page can send, in addition to those that it always can. Firefox and Safari send User-Agent, and tools
 * that trace requests (W3C Trace Context, OpenTelemetry, Sentry) add theirs to each one.
 */
const requestHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, User-Agent, Traceparent, Tracestate, Baggage, Sentry-Trace';

/** How long a browser caches a preflight response for a URL. Chromium's maximum; others allow more. */
const maxAgeSeconds = 7_200;

export class Cors {
  readonly #origins: ReadonlySet<string>;

  /** `origins` are exact origins as browsers send them, or `*` alone for all. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** Call it for each response before it is sent: a document sets a `Vary` of its own. */
  addHeaders({ headers }: FastifyRequest, reply: FastifyReply): void {
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'Origin' : `${String(vary)}, Origin`);
    const origin = this.#allowedOrigin(headers.origin);
    if (origin === undefined) return;
    reply
      .header('access-control-allow-origin', origin)
      .header('access-control-expose-headers', exposedHeaders);
  }

  /** Whether a browser checks if a page of an allowed origin can send a request. */
  isPreflight({ method, headers }: FastifyRequest): boolean {
    return (
      method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      this.#allowedOrigin(headers.origin) !== undefined
    );
  }

  sendPreflight(reply: FastifyReply, methods: string): void {
    reply
      .code(204)
      .header('access-control-allow-methods', methods)
      .header('access-control-allow-headers', requestHeaders)
      .header('access-control-max-age', maxAgeSeconds)
      .send();
  }

  #allowedOrigin(origin: string | undefined): string | undefined {
    if (this.#origins.has('*')) return '*';
    return origin !== undefined && this.#origins.has(origin) ? origin : undefined;
  }
}
