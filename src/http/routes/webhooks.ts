/**
 * The operations with which users manage their webhooks. Without `--webhook-networks`, each responds with 404.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { parseCursor, readFeed } from '../../log/feed.ts';
import { fixedProblem, insufficientScope, Problem } from '../../problem.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import type { Sender } from '../../webhooks/sender.ts';
import { idle, maxWebhooks, type Webhook } from '../../webhooks/webhook.ts';
import { operationsOf, strict, type RouteOptions } from './operation.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

const scopes = ['webhooks:write'] as const;
const maxUrlChars = 2_000;

const webhookId = Type.String({
  description: 'The id of the webhook.',
  examples: ['5f2c8d0e9b1a4c37'],
});

export const NewWebhook = Type.Object(
  {
    url: Type.String({
      maxLength: maxUrlChars,
      format: 'webhook-url',
      description: `an http or https URL of at most ${maxUrlChars} characters, without a user name or a fragment`,
      meaning: 'Where to send messages.',
      examples: ['https://receiver.example/plants'],
    }),
    after: Type.Optional(
      Type.String({
        format: 'change-cursor',
        description: 'a cursor of `GET /changes`',
        meaning: 'Which changes to send: those after this cursor, or by default those from now on.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'a JSON object with the fields url and after',
    meaning: 'The webhook to create.',
    examples: [{ url: 'https://receiver.example/plants' }],
  },
);

export const webhookOperations = operationsOf('webhooks', {
  createWebhook: {
    summary: 'Create a webhook',
    description: `Sends changes of the plants that the calling user can read to a URL, in order, each at least once. The messages and their signatures follow Standard Webhooks. Only this response contains the secret. The token also needs \`plants:read\`. A user can have ${maxWebhooks} webhooks.`,
    scopes,
    body: NewWebhook,
    successes: {
      201: {
        description: 'The webhook is created.',
        schema: 'Webhook',
        created: ['webhook', '/webhooks/5f2c8d0e9b1a4c37'],
      },
    },
    problems: ['token-restricted', 'webhooks-disabled', 'too-many-webhooks', 'cursor-ended'],
  },
  listWebhooks: {
    summary: 'List your webhooks',
    description:
      'Returns all webhooks of the calling user in ascending order of id, with what they are waiting for.',
    scopes,
    successes: { 200: { description: 'The webhooks.', items: 'Webhook' } },
    problems: ['webhooks-disabled'],
  },
  deleteWebhook: {
    summary: 'Delete a webhook',
    description: 'Ends a webhook. An attempt that is in progress can still arrive.',
    scopes,
    params: strict({ webhookId }),
    successes: { 204: { description: 'The webhook is deleted.' } },
    problems: ['webhooks-disabled', 'webhook-not-found'],
  },
  testWebhook: {
    summary: 'Test a webhook',
    description:
      'Sends a message of the type `webhook.test`, and returns how the receiver has responded. If it accepts the message, a webhook that is failing or retired continues at once.',
    scopes,
    params: strict({ webhookId }),
    successes: { 200: { description: 'What the test has found.', schema: 'WebhookTest' } },
    problems: ['webhooks-disabled', 'webhook-not-found'],
  },
});

export function webhookRoutes(
  app: FastifyInstance,
  { storage: { webhooks, log }, optionsOf, baseUrl }: RouteOptions,
  sender: Sender | undefined,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { createWebhook, listWebhooks, deleteWebhook, testWebhook } = webhookOperations;
  const enabled = (): Sender => {
    if (sender !== undefined) return sender;
    throw webhooksDisabled();
  };

  routes.post('/webhooks', optionsOf(createWebhook), async (request, reply) => {
    enabled();
    const { caller, isStored, userName } = request.grant;
    if (!isStored) throw new Problem('token-restricted', foreignToken);
    // Otherwise, messages would contain what the token cannot read.
    if (!caller.scopes.has('plants:read')) throw insufficientScope('plants:read', cannotRead);
    const { url, after } = request.body;
    const { store, user, read } = caller;
    const start = await readFeed(log, { store, user, userName, read }, after, 1);
    const [id, secret] = [randomBytes(8).toString('hex'), randomBytes(32).toString('base64')];
    const identity = { store, user, userName, id, version: 0, lastPosition: start.position };
    const webhook = { ...identity, ...idle, url, secret, cursor: after ?? start.cursor };
    await webhooks.set(webhook, caller, request.id);
    reply.code(201).header('location', `${baseUrl}/webhooks/${id}`);
    return sendJson(reply, JSON.stringify({ ...viewOf(webhook), secret: `whsec_${secret}` }));
  });

  routes.get('/webhooks', optionsOf(listWebhooks), async ({ grant }, reply) => {
    enabled();
    return sendJson(reply, JSON.stringify((await webhooks.list(grant.caller)).map(viewOf)));
  });

  routes.delete('/webhooks/:webhookId', optionsOf(deleteWebhook), async (request, reply) => {
    enabled();
    const { grant, params, id } = request;
    if (!(await webhooks.remove(grant.caller, params.webhookId, id))) throw webhookNotFound();
    return reply.code(204).send();
  });

  routes.post('/webhooks/:webhookId/test', optionsOf(testWebhook), async (request, reply) => {
    const tester = enabled();
    const { store, user } = request.grant.caller;
    const webhook = await webhooks.find([store, user, request.params.webhookId]);
    if (webhook === undefined) throw webhookNotFound();
    const { status, error } = await tester.test(webhook);
    return sendJson(reply, JSON.stringify({ status, error }));
  });
}

const foreignToken =
  'This token is from your identity provider, which could not end the webhook. Use a token of the service.';
const cannotRead =
  'Messages contain plants, so this operation also requires the scope plants:read.';

const webhooksDisabled = fixedProblem(
  'webhooks-disabled',
  'Webhooks are off. Whoever runs this service can allow networks for them.',
);

const webhookNotFound = fixedProblem(
  'webhook-not-found',
  'You have no webhook with this id. "GET /webhooks" lists your webhooks.',
);

function viewOf(webhook: Webhook) {
  const { id, url, cursor, lastPosition, failing, answer, retired: reason } = webhook;
  const isFailing = failing !== undefined && reason === undefined;
  return {
    id,
    url,
    state: isFailing ? 'failing' : reason === undefined ? 'active' : 'retired',
    after: cursor,
    lag: lastPosition - (parseCursor(cursor)?.position ?? 0),
    status: answer?.status,
    error: answer?.error,
    failingSince: formatTimestamp(failing?.sinceMs),
    nextAttemptAt: isFailing ? formatTimestamp(webhook.dueAtMs) : undefined,
    reason,
  };
}
