/**
 * Verifies webhooks (https://www.standardwebhooks.com) with Web Crypto, which browsers and workers have too.
 */
import type { WebhookMessage } from './types.ts';

/** How old a webhook can be, and how far the clocks can differ. */
const toleranceSeconds = 5 * 60;

/** Those of `fetch`, or of Node. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>;

/** The request is not a webhook that was signed with this secret in the last minutes. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
}

/**
 * Returns the content of a webhook, or throws a WebhookError. `body` must be as it was received, because the signature depends
 * on every byte. A webhook can come again, with the same `webhook-id`, if your response was lost.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secret: string,
): Promise<WebhookMessage> {
  const bytes = typeof secret === 'string' ? decode(secret.replace(/^whsec_/, '')) : undefined;
  if (!bytes?.length) throw new TypeError('`secret` must be that of the webhook: whsec_...');
  if (typeof body !== 'string' && !ArrayBuffer.isView(body)) {
    throw new TypeError('`body` must be the body as it was received: text or bytes, not parsed.');
  }
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  const ageSeconds = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || ageSeconds > toleranceSeconds) {
    throw new WebhookError(
      'The time of the webhook is not that of this computer. It is too old, or a clock is wrong.',
    );
  }
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytes, hmac, false, ['verify']);
  for (const one of signatures) {
    const signature = one.startsWith('v1,') ? decode(one.slice(3)) : undefined;
    // The comparison takes equally long, however many bytes are equal.
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed))) {
      return JSON.parse(text) as WebhookMessage; // the service has signed it
    }
  }
  throw new WebhookError('No signature is valid. Check the secret, and pass the body unchanged.');
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([other]) => other.toLowerCase() === name)?.[1];
  if (typeof value === 'string') return value;
  throw new WebhookError(`The request has no header ${name}, so it is not a webhook.`);
}

/** Undefined if the text is not valid. */
function decode(base64: string) {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
