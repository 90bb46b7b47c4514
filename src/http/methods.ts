/**
 * What RFC 9110 says of methods: OPTIONS answers with Allow, and a method that a path does not know
 * gets 405 with Allow, not 404.
 */
import type { FastifyInstance } from 'fastify';
import { Problem } from '../problem.ts';

/** Call it before the first route: it learns them as they are added. */
export function answerOtherMethods(app: FastifyInstance): void {
  const paths = new Map<string, { pattern: RegExp; methods: Set<string> }>();

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
    if (!request.is404) return done();
    // A target may be a whole address too (RFC 9112, section 3.2.2).
    const [path = ''] = request.raw.url?.replace(/^https?:\/\/[^/]*/, '').split('?') ?? [];
    const known = [...paths.values()].filter(({ pattern }) => path === '*' || pattern.test(path));
    if (known.length === 0) {
      return done(
        new Problem('path-not-found', 'There is nothing at this path; /docs tells what there is.'),
      );
    }
    const allow = [...new Set(known.flatMap(({ methods }) => [...methods]))].toSorted().join(', ');
    reply.header('allow', allow);
    if (request.method === 'OPTIONS') return void reply.code(204).send();
    return done(new Problem('method-not-allowed', `This path knows ${allow}.`));
  });
}
