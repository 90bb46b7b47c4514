/**
 * Builds the service as a Fastify app; it never listens. A request goes: request id and Host,
 * unknown path or method, token and scope, body, input, storage, answer.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { fastify, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Storage } from '../storage.ts';
import { acceptBodies } from './body.ts';
import { answerBrokenRequest } from './broken.ts';
import { Connections, lingerAtEnd } from './connections.ts';
import { docsRoutes } from './docs.ts';
import { headFault, isUncertain } from './head.ts';
import { setPrivate } from './headers.ts';
import { healthRoutes } from './health.ts';
import { answerOtherMethods } from './methods.ts';
import { plantRoutes } from './plants.ts';
import {
  headerBytesMax,
  headersMax,
  requestCheckMs,
  requestTimeoutMs,
  stillTimeoutMs,
} from './limits.ts';
import { asProblem, problemHandler, sendProblem } from './problems.ts';
import { validateRequests } from './validation.ts';

export interface AppOptions {
  storage: Storage;
  log: Logger;
  /** Public address, a path prefix included, without a slash at its end; empty for none. */
  baseUrl: string;
  /** Once aborted, the service is on its way out: not ready, and each connection's answer its last. */
  stopping: AbortSignal;
}

/**
 * Input is checked by validation.ts and answers are written as text. Saying so keeps Fastify from
 * loading two compilers at each start. Its types know no other validator than Ajv, hence the `never`.
 */
const nothingToCompile = {
  buildValidator: (() => () => () => true) as never,
  buildSerializer: () => () => JSON.stringify,
};

export function buildApp(options: AppOptions): FastifyInstance {
  const { log, stopping } = options;
  const connections = new Connections();
  const faultOf = (request: IncomingMessage) => {
    if (isUncertain(request)) connections.endAfterThis(request);
    return headFault(request);
  };
  const app = fastify({
    requestTimeout: requestTimeoutMs,
    connectionTimeout: stillTimeoutMs,
    return503OnClosing: false, // a request that came in is answered, also on the way out
    genReqId: () => randomUUID(),
    // Too long for the router is still an id that validation refuses with a reason.
    routerOptions: { maxParamLength: 65_536 },
    http: {
      maxHeaderSize: headerBytesMax,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: requestCheckMs,
      requireHostHeader: false, // checked below, where the answer is a problem
    },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, connections),
    frameworkErrors: (error, { raw }, reply) =>
      connections.begin(
        raw,
        reply.raw,
        () => void sendProblem(reply, faultOf(raw) ?? asProblem(error)),
      ),
    schemaController: { compilersFactory: nothingToCompile },
  });
  connections.admitTo(app.server);
  app.server.maxHeadersCount = headersMax + 1; // one more, because Node 24 drops the others in silence
  // Whoever has sent a whole request gets the answer, even if they send nothing more. Its type lacks this.
  (app.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // An expectation that cannot be met is refused below like everything else that is wrong.
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  );
  app.setErrorHandler(problemHandler(log));

  app.addHook('onRequest', (request, reply, done) =>
    connections.begin(request.raw, reply.raw, () => {
      setPrivate(reply.header('x-request-id', request.id));
      done(faultOf(request.raw));
    }),
  );
  // Not before: the service may begin to stop while a body is still coming. And with the last of the
  // requests that came over a connection alone: Node ends it with the first answer that says so.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { raw } = request;
    const isLast = stopping.aborted
      ? connections.isNewestRequest(raw)
      : connections.isFinalAnswer(raw);
    if (isLast) reply.header('connection', 'close');
    // The client may still be sending when it gets the last answer.
    if (isLast || (reply.statusCode >= 400 && !raw.complete)) lingerAtEnd(raw.socket);
    if (request.caller !== undefined) connections.trust(raw.socket);
    done();
  });
  if (log.isLevelEnabled('debug')) logRequests(app, log);
  answerOtherMethods(app, connections);
  acceptBodies(app);
  validateRequests(app);

  addRoutes(app, options);
  return app;
}

/** Every route of the service. openapi.json comes from here too: it describes those that have a schema. */
export function addRoutes(
  app: FastifyInstance,
  { storage, log, baseUrl, stopping }: AppOptions,
): void {
  plantRoutes(app, { storage, log, baseUrl });
  healthRoutes(app, storage, stopping);
  docsRoutes(app, baseUrl);
}

function logRequests(app: FastifyInstance, log: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    // The route and not the URL: a query may hold plant data.
    log.debug({
      requestId: request.id,
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 1_000) / 1_000,
    });
    done();
  });
}
