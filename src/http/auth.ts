/**
 * Bearer tokens (RFC 6750): who is calling. The storage is asked with each request, so that a
 * revocation holds from the next one on.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { stateOf, type Caller, type Scope } from '../access.ts';
import { Memory } from '../memory.ts';
import { Problem } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { hashToken, isToken } from '../token.ts';
import { headerCount } from './headers.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on a route that asks for a scope, and nowhere else. */
    caller: Caller;
  }
}

/**
 * Hashes of tokens that the storage knew, by the header they came in: to check and hash a token is a
 * tenth of a short request. What anybody can send without a token is not kept, nor a header with more in
 * it than a token.
 */
const hashes = new Memory<Uint8Array>(10_000);
const keptHeaderChars = 100;

/** An onRequest hook: lets a request pass whose token is good and carries the scope. */
export function requireScope(storage: Storage, scope: Scope) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const caller = await authenticate(storage, request, reply);
    if (!caller.scopes.has(scope)) {
      challenge(reply, `error="insufficient_scope", scope="${scope}"`);
      throw new Problem(
        'insufficient-scope',
        `This needs a token with the scope ${scope}; yours has ${[...caller.scopes].join(' ')}.`,
      );
    }
    request.caller = caller;
  };
}

async function authenticate(
  storage: Storage,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    challenge(reply);
    throw new Problem(
      'invalid-token',
      'Send a token in the header "Authorization: Bearer <token>"; "plant-store token create" makes one.',
    );
  }

  const refuse = (detail: string): never => {
    challenge(reply, 'error="invalid_token"');
    throw new Problem('invalid-token', detail);
  };
  if (headerCount(request.raw, 'authorization') > 1) {
    return refuse('There are two Authorization headers; send one.');
  }
  const known = hashes.get(authorization);
  const tokenHash = known ?? hashOf(authorization, refuse);
  const grant = await storage.findGrant(tokenHash);
  if (grant === undefined) return refuse('The token is not known here.');
  if (known === undefined && authorization.length <= keptHeaderChars) {
    hashes.keep(authorization, tokenHash);
  }
  const state = stateOf(grant, Date.now());
  return state === 'active' ? grant.caller : refuse(`The token is ${state}; ask for a new one.`);
}

function hashOf(authorization: string, refuse: (detail: string) => never): Uint8Array {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token === undefined) return refuse('The header must have the form "Bearer <token>".');
  if (!isToken(token)) return refuse('This is not a token of Plant Store: is it copied whole?');
  return hashToken(token);
}

function challenge(reply: FastifyReply, parameters?: string): void {
  reply.header('www-authenticate', parameters === undefined ? 'Bearer' : `Bearer ${parameters}`);
}
