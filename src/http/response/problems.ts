/**
 * Problems as HTTP responses (RFC 9457). docs/reference/errors.md describes each kind.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { countRefusal } from '../../metrics/metrics.ts';
import { defect, fixedProblem, Problem, problemKinds, type ProblemKind } from '../../problem.ts';
import { redactTokens } from '../../access/token.ts';
import { TokenBuckets } from '../../shared/token-buckets.ts';
import { setPrivateHeaders } from './headers.ts';
import { maxBodyBytes, maxHeaderBytes, maxHeaders } from '../limits.ts';
import { sendText } from './send.ts';

export const problemMediaType = 'application/problem+json';

const retryAfter = (seconds: number) => ({ 'Retry-After': seconds });
const challenge = (error: string) => ({ 'WWW-Authenticate': `Bearer error="${error}"` });

/** The response gets these headers unless it has others of the same name. */
export const problemHeaders: Partial<Record<ProblemKind, Record<string, string | number>>> = {
  'invalid-token': challenge('invalid_token'),
  'insufficient-scope': challenge('insufficient_scope'),
  'unsupported-media-type': { Accept: 'application/json', 'Accept-Encoding': 'identity' },
  // request-limits.ts sets it for rate-limited.
  overloaded: retryAfter(1),
  'storage-full': retryAfter(60),
  'storage-unavailable': retryAfter(1),
  'provider-unavailable': retryAfter(5),
  'outcome-unknown': retryAfter(1),
};

/** Leads to the kind in the reference (docs.ts), below the path prefix of the base URL. */
export function problemType(kind: ProblemKind, pathPrefix: string): string {
  return `${pathPrefix}/problems/${kind}`;
}

/** The body of a response; call it once per response. Only a 5xx contains the request id, to find it in the log. */
export function problemBody(problem: Problem, requestId: string, pathPrefix: string): string {
  const { status, title } = problemKinds[problem.kind];
  countRefusal(problem.kind);
  const text = JSON.stringify({
    type: problemType(problem.kind, pathPrefix),
    title,
    status,
    detail: status < 500 ? problem.detail : `${problem.detail} The request id is ${requestId}.`,
    errors: problem.faults,
    ...problem.members,
  });
  // Faults quote the names of fields and parameters, and a client can send a token as a name.
  return problem.faults === undefined ? text : redactTokens(text);
}

export function sendProblem(
  reply: FastifyReply,
  problem: Problem,
  pathPrefix: string,
): FastifyReply {
  if (problem.scope !== undefined) {
    const lacking = `Bearer error="insufficient_scope", scope="${problem.scope}"`;
    reply.header('www-authenticate', lacking);
  }
  for (const [name, value] of Object.entries(problemHeaders[problem.kind] ?? {})) {
    if (!reply.hasHeader(name)) reply.header(name, value);
  }
  const { id } = reply.request;
  reply.code(problemKinds[problem.kind].status).header('x-request-id', id);
  setPrivateHeaders(reply);
  return sendText(reply, problemMediaType, problemBody(problem, id, pathPrefix));
}

/** Maximum number of failures of a kind that are logged in a second. */
const maxEntriesPerSecond = 20;

/** The error handler of the app: sends any error as a problem, and logs it if the service failed. */
export function problemHandler(log: Logger, pathPrefix: string) {
  // By kind. Clients without a token can cause some at any rate, and must not fill the disk.
  const entries = new TokenBuckets({ requests: maxEntriesPerSecond, windowSeconds: 1 });
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const problem = asProblem(error);
    const { kind, cause = problem } = problem;
    const { status } = problemKinds[kind];
    const isFailure = status === 500 || status === 503; // others are errors of the client
    // write-health.ts logs a full disk once.
    if (isFailure && kind !== 'storage-full' && entries.take(kind).isAllowed) {
      log.error({ requestId: request.id, kind, err: cause }, 'request failed');
    }
    return sendProblem(reply, problem, pathPrefix);
  };
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return unsupportedMediaType();
    case 'FST_ERR_BAD_URL':
      return new Problem('invalid-request', 'The path is not valid percent-encoded UTF-8.');
    default:
      return defect(error);
  }
}

export const unsupportedMediaType = fixedProblem(
  'unsupported-media-type',
  'Send the body as JSON in UTF-8, uncompressed, with "Content-Type: application/json".',
);

export const headersTooLarge = fixedProblem(
  'headers-too-large',
  `The URL and the headers can have at most ${maxHeaderBytes} bytes together, and ${maxHeaders} headers.`,
);

export const bodyTooLarge = fixedProblem(
  'body-too-large',
  `A body can have at most ${maxBodyBytes} bytes.`,
);

export const versionNotSupported = fixedProblem(
  'version-not-supported',
  'Send the request as HTTP/1.1.',
);

export const pathNotFound = fixedProblem(
  'path-not-found',
  'There is nothing at this path. /docs lists the paths.',
);
