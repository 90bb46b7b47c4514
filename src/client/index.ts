/**
 * What the package exports. The page of the service imports less.
 */
export * from './client.ts';
export { verifyWebhook, WebhookError, type WebhookHeaders } from './webhook.ts';
