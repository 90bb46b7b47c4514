/**
 * Builds the Fastify app, without listening. The stages of a request: request id and head, path and method, token
 * and scope, body, validation, storage, response.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Server as NetServer } from 'node:net';
import { fastify, type FastifyInstance } from 'fastify';
import type { Level, Logger } from 'pino';
import { stateOf, type Grant } from '../access/access.ts';
import type { PageSignOn } from '../oidc/options.ts';
import type { Verifier } from '../oidc/verifier.ts';
import { tokenEnded } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { Watch } from '../log/watch.ts';
import { Authentication } from './auth/auth.ts';
import { acceptJsonBodies } from './request/body.ts';
import { handleClientError } from './server/client-errors.ts';
import { Connections } from './server/connections.ts';
import { Cors } from './server/cors.ts';
import { drain } from './server/drain.ts';
import { docsRoutes } from './routes/docs.ts';
import { headProblem } from './server/head.ts';
import { setPrivateHeaders } from './response/headers.ts';
import { healthRoutes } from './routes/health.ts';
import { handleOtherMethods } from './server/methods.ts';
import { observerOf } from './server/observe.ts';
import { optionsFor } from './routes/operation.ts';
import { changeRoutes } from './routes/changes.ts';
import { plantRoutes } from './routes/plants.ts';
import { lingerOnClose } from './server/linger.ts';
import { asProblem, problemHandler, sendProblem } from './response/problems.ts';
import { RequestLimits, type Limits } from './auth/request-limits.ts';
import { Lists } from './response/send-list.ts';
import { createLimitedServer, type ServerFactory } from './server/create.ts';
import { restoreRoutes } from './routes/restore.ts';
import { shareRoutes } from './routes/shares.ts';
import { TokenUses } from './auth/token-uses.ts';
import { tokenRoutes, type LastBackup } from './routes/tokens.ts';
import { validateRequests } from './request/validation.ts';
import { watchWrites } from './routes/write-health.ts';
import { userRoutes } from './routes/users.ts';
import { webRoutes } from './routes/web.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import type { Sender } from '../webhooks/sender.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Stops without dropping an accepted request. Resolves when no connection is left. */
    drain(listening: readonly NetServer[]): Promise<void>;
  }
}

export interface AppOptions {
  storage: Storage;
  log: Logger;
  /** The level at which each request is logged; debug by default. */
  logRequests?: Level | undefined;
  /** Public URL, including any path prefix, without a trailing slash; empty for path-absolute links. */
  baseUrl: string;
  /** Origins whose web pages can use the service, or `*` alone; none by default. */
  corsOrigins?: readonly string[];
  /** Verifies tokens of an identity provider. Without it, only our own tokens are accepted. */
  verifier?: Verifier | undefined;
  /** Lets people sign in on the page with that provider. */
  signOn?: PageSignOn | undefined;
  /** Creates the server, for TLS. Without it, the app serves plain HTTP. */
  createServer?: ServerFactory | undefined;
  /** Sends to webhooks. Without it, users cannot create any. */
  webhooks?: Sender | undefined;
  /** Resolves to when the last verified backup was begun. Without it, the service makes none. */
  lastBackup?: LastBackup;
  /** Limits on the requests of a token or an address; none by default. */
  limits?: Limits;
  /** Once aborted, the service is not ready, and each connection closes after its next response. */
  stopping: AbortSignal;
}

/**
 * validation.ts checks input, and responses are text, so Fastify does not need to load its two compilers at startup.
 * Its types support only the validators of Ajv, hence the `never`.
 */
const noCompilers = {
  buildValidator: (() => () => () => true) as never,
  buildSerializer: () => () => JSON.stringify,
};

export function buildApp(options: AppOptions): FastifyInstance {
  const { log, baseUrl, corsOrigins = [], createServer } = options;
  const observe = observerOf(log, options.logRequests ?? 'debug');
  const cors = corsOrigins.length === 0 ? undefined : new Cors(corsOrigins);
  const pathPrefix = baseUrl === '' ? '' : new URL(baseUrl).pathname.replace(/\/$/, '');
  const connections = new Connections((request) => authentication.familyOf(request));
  const checkHead = (request: IncomingMessage) => {
    const problem = headProblem(request);
    if (problem !== undefined) connections.closeAfter(request);
    return problem;
  };
  const app = fastify<Server>({
    serverFactory: (handler) => createLimitedServer(connections, log, handler, createServer),
    return503OnClosing: false, // accepted requests get a response during shutdown too
    genReqId: () => randomUUID(),
    routerOptions: {
      // Lets ids that are too long reach validation, which returns a reason. The router would return 404.
      maxParamLength: 65_536,
      // validation.ts parses a query, and only once its sender has a token.
      querystringParser: () => ({}),
    },
    clientErrorHandler: (error, socket) =>
      handleClientError(error, socket, connections, pathPrefix),
    frameworkErrors: (error, request, reply) => {
      observe(request, reply); // no hook runs
      cors?.addHeaders(request, reply);
      sendProblem(reply, checkHead(request.raw) ?? asProblem(error), pathPrefix);
    },
    schemaController: { compilersFactory: noCompilers },
  });
  app.decorate('drain', (listening) => drain(app.server, connections, listening));
  app.setErrorHandler(problemHandler(log, pathPrefix));

  app.addHook('onRequest', (request, reply, done) => {
    observe(request, reply);
    setPrivateHeaders(reply.header('x-request-id', request.id));
    done(checkHead(request.raw));
  });
  // Decided as late as possible, because a shutdown can begin while a body arrives. Only the response to the newest
  // request gets the header, because Node closes the connection after the first response that has it.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { raw } = request;
    const isLast = connections.isLastRequest(raw);
    if (isLast) reply.header('connection', 'close');
    // The client may still be sending when it gets the response.
    if (isLast || (reply.statusCode >= 400 && !raw.complete)) lingerOnClose(raw.socket);
    cors?.addHeaders(request, reply);
    if (request.grant !== undefined) connections.markAuthenticated(raw.socket);
    done();
  });
  handleOtherMethods(app, cors);
  acceptJsonBodies(app);
  validateRequests(app);

  const authentication = addRoutes(app, options);
  return app;
}

/** Adds every route. tools/openapi.ts uses it too: openapi.json describes the routes that have a schema. */
export function addRoutes(
  app: FastifyInstance,
  { storage, log, baseUrl, limits = {}, verifier, signOn, webhooks, ...options }: AppOptions,
): Authentication {
  const { lastBackup, stopping } = options;
  const uses = new TokenUses(storage.identity);
  stopping.addEventListener('abort', () => void uses.flush());
  app.addHook('onClose', () => uses.close());
  const requestLimits = new RequestLimits(limits, log);
  const authentication = new Authentication(storage.identity, requestLimits, uses, verifier);
  app.decorateRequest('grant');
  // A token can expire while the body arrives. Each write checks in its transaction whether it was revoked.
  app.addHook('preHandler', ({ grant }, _reply, done) => {
    const state = (grant as Grant | undefined) && stateOf(grant, Date.now()); // not all routes have one
    done(state === undefined || state === 'active' ? undefined : tokenEnded(state));
  });
  app.decorateRequest('leave');
  app.decorateRequest('page');
  const lists = new Lists(log, baseUrl);
  const routeOptions = { storage, optionsOf: optionsFor(authentication), lists, baseUrl };
  const writeFailure = watchWrites(app, storage, log);
  plantRoutes(app, routeOptions);
  const watch = new Watch(storage.log, stopping);
  app.addHook('onSend', ({ method, grant }, _reply, _payload, done) => {
    const { caller } = (grant as Grant | undefined) ?? {}; // not all routes have one
    if (method !== 'GET' && caller !== undefined) watch.notify(caller.store);
    if (method !== 'GET') webhooks?.wake();
    done();
  });
  changeRoutes(app, { ...routeOptions, authentication, limits: requestLimits, watch });
  restoreRoutes(app, routeOptions);
  shareRoutes(app, routeOptions);
  tokenRoutes(app, routeOptions, lastBackup);
  userRoutes(app, routeOptions);
  webhookRoutes(app, routeOptions, webhooks);
  healthRoutes(app, storage, writeFailure, stopping);
  docsRoutes(app, baseUrl);
  webRoutes(app, signOn);
  return authentication;
}
