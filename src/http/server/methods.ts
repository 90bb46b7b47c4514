/**
 * Handles OPTIONS and unsupported methods (RFC 9110). OPTIONS returns Allow. A method that the path does not support
 * gets 405 with Allow instead of 404.
 */
import type { FastifyInstance, HTTPMethods } from 'fastify';
import type { Cors } from './cors.ts';
import { Problem } from '../../problem.ts';
import { acceptPatch } from '../request/body.ts';
import { pathNotFound } from '../response/problems.ts';

/** Call it before the first route is added, because it collects the methods of all routes. */
export function handleOtherMethods(app: FastifyInstance, cors: Cors | undefined): void {
  const methods = new Set<HTTPMethods>();

  app.addHook('onRoute', ({ method }) => {
    for (const one of [method].flat()) methods.add(one);
  });

  // A hook instead of a handler, because hooks run before the body is checked, which can be of any type here.
  app.addHook<{ Params: Record<string, string> }>('onRequest', (request, reply, done) => {
    const { url = '' } = request.raw;
    // `*` is the server, not a path (RFC 9110, section 9.3.7). The router treats it as "/".
    const isServerWide = url.startsWith('*');
    if (!request.is404 && !isServerWide && !hasEmptyParam(request.params)) return done();
    const allowed = [...methods].filter((method) => isServerWide || hasRoute(app, method, url));
    if (cors?.isPreflight(request) === true) {
      // Allows any method for an unknown path, so that the page can send the request and read the 404.
      return cors.sendPreflight(reply, allowHeader(allowed.length === 0 ? methods : allowed));
    }
    if (allowed.length === 0) return done(pathNotFound());
    const allow = allowHeader(allowed);
    reply.header('allow', allow);
    if (allowed.includes('PATCH')) reply.header('accept-patch', acceptPatch);
    if (request.method === 'OPTIONS') return void reply.code(204).send();
    return done(new Problem('method-not-allowed', `This path supports ${allow}.`));
  });
}

function allowHeader(methods: Iterable<string>): string {
  return [...methods, 'OPTIONS'].toSorted().join(', ');
}

/** Uses the router of the app, so that paths match exactly as for requests. */
function hasRoute(app: FastifyInstance, method: HTTPMethods, url: string): boolean {
  const route = app.findRoute({ method, url });
  return route !== null && !hasEmptyParam(route.params);
}

/** The router matches /plants/ as /plants/:id with an empty id. */
function hasEmptyParam(params: Record<string, string | undefined>): boolean {
  for (const name in params) if (params[name] === '') return true;
  return false;
}
