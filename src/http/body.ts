/**
 * Which bodies are let in at all: plain JSON, on a route that has a schema for a body. They arrive there
 * as the bytes that were sent; validation.ts reads them.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../problem.ts';
import { headerCount } from './headers.ts';
import { bodyBytesMax } from './limits.ts';
import { bodyTooLarge, unsupportedMediaType } from './problems.ts';

/** Call it before the first route is added. */
export function acceptBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, _payload, done) =>
    readBody(request.raw, done),
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

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Most bodies have come whole when the caller has been found: reading one at once takes a fraction of what
 * listening to its events does, and the writes of a turn of the event loop stay together.
 */
function readBody(request: IncomingMessage, done: Done): void {
  if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) return done(bodyTooLarge());
  const chunks: Buffer[] = [];
  if (request.complete) {
    // Since Node 26, each read gives one piece.
    for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    return done(body.length > bodyBytesMax ? bodyTooLarge() : null, body);
  }
  let bytes = 0;
  const collect = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyBytesMax) finish(bodyTooLarge());
  };
  const finish = (error: Error | null) => {
    request.off('data', collect).off('end', end).off('error', finish);
    done(error, Buffer.concat(chunks));
  };
  const end = () => finish(null);
  request.on('data', collect).on('end', end).on('error', finish);
}

function refuseAny(): Problem {
  return new Problem('invalid-request', 'This operation takes no body; send none.');
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
