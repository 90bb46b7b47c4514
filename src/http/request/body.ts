/**
 * Accepts a body only if it is JSON and the route has a schema for it. Routes get the bytes unchanged, and
 * validation.ts parses them.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalidParameter, invalidRequest, Problem } from '../../problem.ts';
import { headerCount } from '../response/headers.ts';
import { maxBodyBytes } from '../limits.ts';
import { bodyTooLarge, unsupportedMediaType } from '../response/problems.ts';

const json = 'application/json';
/** RFC 7396. */
const mergePatch = 'application/merge-patch+json';
const patchTypes = [mergePatch, json];
/** The header `Accept-Patch` (RFC 5789, section 3.1). */
export const acceptPatch = patchTypes.join(', ');

/** The media types that a body can have. */
export function mediaTypesOf(method: string): readonly string[] {
  return method === 'PATCH' ? patchTypes : [json];
}

/** Call it before the first route is added. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([json, mergePatch], (request, _payload, done) =>
    readBody(request.raw, done),
  );

  app.addHook('onRoute', (route) => {
    const takesBody = route.schema?.body !== undefined;
    const accepted = mediaTypesOf(String(route.method));
    route.preParsing = (request, reply, payload, done) => {
      const { headers } = request;
      const problem = bodyProblem(request, takesBody ? accepted : []);
      if (problem?.kind === 'unsupported-media-type' && accepted === patchTypes) {
        reply.header('accept-patch', acceptPatch);
      }
      if (hasBody(request)) {
        if (problem === null && expectsContinue(request)) reply.raw.writeContinue();
      } else if (headers['content-type'] !== undefined) {
        delete headers['content-type']; // many clients always send one
      }
      done(problem, payload);
    };
  });
}

/** Why a body is not accepted, as its headers show. Without `mediaTypes`, there must be none. */
function bodyProblem(request: FastifyRequest, mediaTypes: readonly string[]): Problem | null {
  const { raw, headers } = request;
  if (headers['content-type'] !== undefined && headerCount(raw, 'content-type') > 1) {
    return invalidParameter('Content-Type', 'Send exactly one Content-Type header.');
  }
  if (!hasBody(request)) return null;
  if (mediaTypes.length > 0) return isPlain(mediaTypes, request) ? null : unsupportedMediaType();
  return invalidRequest([{ pointer: '', detail: 'Send this request without a body.' }]);
}

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Most bodies have arrived by the time the caller is authenticated. Reading them synchronously is much faster than
 * with events, and keeps the writes of one event loop iteration together.
 */
function readBody(request: IncomingMessage, done: Done): void {
  if (isTooLarge(request)) return done(bodyTooLarge());
  const chunks: Buffer[] = [];
  if (request.complete) {
    while (request.readableLength > 0) chunks.push(request.read()); // since Node 26, one chunk each
    const body = Buffer.concat(chunks);
    return done(body.length > maxBodyBytes ? bodyTooLarge() : null, body);
  }
  let bytes = 0;
  const collect = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBodyBytes) finish(bodyTooLarge());
  };
  const finish = (error: Error | null) => {
    request.off('data', collect).off('end', end).off('error', abort);
    done(error, Buffer.concat(chunks));
  };
  const end = () => finish(null);
  const abort = () =>
    finish(new Problem('invalid-request', 'The connection closed before the whole body arrived.'));
  request.on('data', collect).on('end', end).on('error', abort);
}

/** Whether the client waits for a response before it sends a body that will be read. */
function expectsContinue({ raw, headers }: FastifyRequest): boolean {
  // head.ts refuses other expectations.
  return headers.expect !== undefined && raw.httpVersion !== '1.0' && !isTooLarge(raw);
}

function isTooLarge({ headers }: IncomingMessage): boolean {
  return Number(headers['content-length'] ?? 0) > maxBodyBytes;
}

/** Only these two headers indicate a body (RFC 9112, section 6). */
function hasBody({ headers }: FastifyRequest): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}

/** Whether the body is of one of these media types, in UTF-8 and not compressed. */
function isPlain(mediaTypes: readonly string[], { headers }: FastifyRequest): boolean {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const hasOtherCharset = parameters.some((parameter) => {
    const [name = '', value = ''] = parameter.split('=');
    return name.trim() === 'charset' && !/^\s*"?utf-?8"?\s*$/.test(value);
  });
  const isEncoded = headers['content-encoding'] !== undefined;
  return mediaTypes.includes(mediaType.trim()) && !hasOtherCharset && !isEncoded;
}
