/**
 * Which bodies are let in at all: plain JSON, on a route that has a schema for a body. They arrive there
 * as the bytes that were sent; validation.ts reads them.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../problem.ts';
import { headerCount } from './headers.ts';
import { unsupportedMediaType } from './problems.ts';

/** Call it before the first route is added. */
export function acceptBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.addHook('onRoute', (route) => {
    const refusalOf = route.schema?.body === undefined ? refuseAny : refuseForeign;
    route.preParsing = (request, _reply, payload, done) => {
      const hasType = request.headers['content-type'] !== undefined;
      if (hasType && headerCount(request.raw, 'content-type') > 1) done(oneType(), payload);
      else if (hasBody(request)) done(refusalOf(request), payload);
      else {
        // Many clients send a content type with every request; without a body it means nothing.
        if (hasType) delete request.headers['content-type'];
        done(null, payload);
      }
    };
  });
}

function refuseAny(): Problem {
  return new Problem('invalid-request', 'This method takes no body here; send none.');
}

function refuseForeign(request: FastifyRequest): Problem | null {
  return isPlainJson(request) ? null : unsupportedMediaType();
}

function oneType(): Problem {
  return new Problem('invalid-request', 'There are two Content-Type headers; send one.');
}

/** RFC 9112, section 6: these two headers and nothing else tell that there is a body. */
function hasBody({ headers }: FastifyRequest): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}

function isPlainJson({ headers }: FastifyRequest): boolean {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const foreignCharset = parameters.some((parameter) => {
    const [name = '', value = ''] = parameter.split('=');
    return name.trim() === 'charset' && !/^\s*"?utf-?8"?\s*$/.test(value);
  });
  const encoded = headers['content-encoding'] !== undefined;
  return mediaType.trim() === 'application/json' && !foreignCharset && !encoded;
}
