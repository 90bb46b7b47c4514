/**
 * Builds the service as a Fastify app; it never listens. A request goes: request id and Host,
 * unknown path or method, token and scope, body, input, storage, answer.
 */
import { randomUUID } from 'node:crypto';
import { fastify, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { acceptBodies } from './body.ts';
import { answerBrokenRequest, answerExpectation, AnswersOwed } from './broken.ts';
import { docsRoutes } from './docs.ts';
import { headerCount } from './headers.ts';
import { healthRoutes } from './health.ts';
import { answerOtherMethods } from './methods.ts';
import { plantRoutes } from './plants.ts';
import {
  bodyBytesMax,
  connectionsMax,
  headerBytesMax,
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

export function buildApp({ storage, log, baseUrl, stopping }: AppOptions): FastifyInstance {
  const owed = new AnswersOwed();
  const app = fastify({
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: stillTimeoutMs,
    return503OnClosing: false, // a request that came in is answered, also on the way out
    genReqId: () => randomUUID(),
    // Too long for the router is still an id that validation refuses with a reason.
    routerOptions: { maxParamLength: 65_536 },
    // Host is checked below, where the answer is a problem.
    http: { maxHeaderSize: headerBytesMax, requireHostHeader: false },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, owed),
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, asProblem(error)),
    schemaController: { compilersFactory: nothingToCompile },
  });
  app.server.maxConnections = connectionsMax;
  app.server.on('checkExpectation', answerExpectation);
  app.setErrorHandler(problemHandler(log));

  app.addHook('onRequest', (request, reply, done) => {
    owed.begin(request.raw, reply.raw);
    reply.header('x-request-id', request.id);
    const hosts = headerCount(request.raw, 'host');
    const isWrong = hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1');
    done(isWrong ? oneHost() : undefined);
  });
  // Not before: the service may begin to stop while a body is still coming. And with the last of the
  // requests that came over a connection alone: Node ends it with the first answer that says so.
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (stopping.aborted && owed.isLatest(request.raw)) reply.header('connection', 'close');
    done();
  });
  if (log.isLevelEnabled('debug')) logRequests(app, log);
  answerOtherMethods(app);
  acceptBodies(app);
  validateRequests(app);

  plantRoutes(app, { storage, log, baseUrl });
  healthRoutes(app, storage, stopping);
  docsRoutes(app, baseUrl);
  return app;
}

function oneHost(): Problem {
  return new Problem('invalid-request', 'Send exactly one Host header (RFC 9112, section 3.2).');
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
