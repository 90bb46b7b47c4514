/**
 * What RFC 9110 says of methods: OPTIONS answers with Allow, and a method that a path does not know
 * gets 405 with Allow, not 404. So does CONNECT, which Node keeps from every route.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';
import { answerConnect } from './broken.ts';
import type { Connections } from './connections.ts';
import { badUrl } from './problems.ts';

interface Path {
  pattern: RegExp;
  methods: Set<string>;
}

/** Call it before the first route: it learns them as they are added. */
export function answerOtherMethods(app: FastifyInstance, connections: Connections): void {
  const paths = new Map<string, Path>();

  app.addHook('onRoute', ({ url, method }) => {
    const segments = url
      .split('/')
      .map((one) => (one.startsWith(':') ? '[^/]+' : RegExp.escape(one)));
    const pattern = new RegExp(`^${segments.join('/')}$`);
    const path = paths.get(url) ?? { pattern, methods: new Set(['OPTIONS']) };
    for (const one of [method].flat()) path.methods.add(one);
    paths.set(url, path);
  });

  // A hook and not a handler: it comes before the body is looked at, which may be of any kind here.
  app.addHook('onRequest', (request, reply, done) => {
    // The router takes /plants/ for /plants/:id with an empty id.
    const hasEmptyId = (request.params as { id?: string }).id === '';
    if (!request.is404 && !hasEmptyId) return done();
    const path = pathOf(request.raw.url ?? '');
    if (path === undefined) return done(badUrl());
    const known = [...paths.values()].filter(({ pattern }) => path === '*' || pattern.test(path));
    if (known.length === 0) {
      return done(
        new Problem('path-not-found', 'There is nothing at this path; /docs tells what there is.'),
      );
    }
    const allow = allowOf(known);
    reply.header('allow', allow);
    if (request.method === 'OPTIONS') return void reply.code(204).send();
    return done(new Problem('method-not-allowed', `This path knows ${allow}.`));
  });

  app.server.on('connect', ({ socket }: IncomingMessage) =>
    answerConnect(socket, connections, allowOf([...paths.values()])),
  );
}

function allowOf(paths: readonly Path[]): string {
  return [...new Set(paths.flatMap(({ methods }) => [...methods]))].toSorted().join(', ');
}

/** The path decoded as the router does it, so that `%2F` is no slash; undefined if it cannot be. */
function pathOf(target: string): string | undefined {
  // A target may be a whole address too (RFC 9112, section 3.2.2).
  const [path = ''] = target.replace(/^https?:\/\/[^/?]*/i, '').split('?');
  try {
    return decodeURI(path);
  } catch {
    return undefined;
  }
}
