/**
 * What RFC 9110 says of methods: OPTIONS answers with Allow, and a method that a path does not know
 * gets 405 with Allow, not 404. So does CONNECT, which Node keeps from every route.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, HTTPMethods } from 'fastify';
import { Problem } from '../problem.ts';
import { refuseConnect } from './client-errors.ts';
import type { Connections } from './connections.ts';
import { methodNotAllowed } from './problems.ts';

/** Call it before the first route is added: it collects the methods of all. */
export function answerOtherMethods(app: FastifyInstance, connections: Connections): void {
  const methods = new Set<HTTPMethods>();

  app.addHook('onRoute', ({ method }) => {
    for (const one of [method].flat()) methods.add(one);
  });

  // A hook and not a handler: it comes before the body is looked at, which may be of any kind here.
  app.addHook<{ Params: Record<string, string> }>('onRequest', (request, reply, done) => {
    if (!request.is404 && !hasEmpty(request.params)) return done();
    const { url = '' } = request.raw;
    const isWhole = url.startsWith('*'); // the service and no path (RFC 9110, section 9.3.7)
    const known = [...methods].filter((method) => isWhole || hasRoute(app, method, url));
    if (known.length === 0) {
      return done(
        new Problem('path-not-found', 'There is nothing at this path. /docs lists the paths.'),
      );
    }
    const allow = allowOf(known);
    reply.header('allow', allow);
    if (request.method === 'OPTIONS') return void reply.code(204).send();
    return done(methodNotAllowed(allow));
  });

  app.server.on('connect', ({ socket }: IncomingMessage) =>
    refuseConnect(socket, connections, allowOf(methods)),
  );
}

function allowOf(methods: Iterable<string>): string {
  return [...methods, 'OPTIONS'].toSorted().join(', ');
}

/** Asks the router that routes requests, so a path is the same one with every method. */
function hasRoute(app: FastifyInstance, method: HTTPMethods, url: string): boolean {
  const route = app.findRoute({ method, url });
  return route !== null && !hasEmpty(route.params);
}

/** The router takes /plants/ for /plants/:id with an empty id. */
function hasEmpty(params: Record<string, string | undefined>): boolean {
  for (const name in params) if (params[name] === '') return true;
  return false;
}
