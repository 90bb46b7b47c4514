/**
 * Which bodies are let in at all. They arrive at a route as the bytes that were sent; validation.ts
 * reads them.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../problem.ts';
import { headerCount } from './headers.ts';
import { unsupportedMediaType } from './problems.ts';

export function acceptBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.addHook('preParsing', (request, _reply, payload, done) => {
    const hasType = request.headers['content-type'] !== undefined;
    if (hasType && headerCount(request.raw, 'content-type') > 1) done(oneType(), payload);
    else if (hasBody(request)) done(refusalOf(request), payload);
    else {
      // Many clients send a content type with every request; without a body it means nothing.
      if (hasType) delete request.headers['content-type'];
      done(null, payload);
    }
  });
}

function refusalOf(request: FastifyRequest): Problem | null {
  if (request.method !== 'POST') {
    return new Problem('invalid-request', 'This method takes no body here; send none.');
  }
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
