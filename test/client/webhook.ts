/**
 * Webhooks that other programs have signed.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { it } from 'node:test';
import { Webhook as Signer } from 'standardwebhooks';
import { verifyWebhook } from '../../src/client/index.ts';
import { without } from '../support/programs.ts';

const secret = `whsec_${randomBytes(24).toString('base64')}`;
const content = {
  type: 'plants.changed',
  timestamp: '2026-01-31T12:00:00.000Z',
  data: { changes: [{ id: 1, event: 'created', plant: { name: 'Żywopłot 🌵', tag: '' } }] },
};
const body = JSON.stringify(content);

/** As the library of Standard Webhooks signs it. */
function signed(at = new Date(), key = secret): Record<string, string> {
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Signer(key).sign('msg_1', at, body),
  };
}

const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);

it('a webhook that is signed with the secret is returned', async () => {
  const headers = signed();
  const [other, version2] = [signed(new Date(), `whsec_${btoa('other')}`), 'v1a,AAAA'];
  const several = [other['webhook-signature'], version2, 'v1,?', headers['webhook-signature']];
  const inCapitals = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]);
  for (const given of [
    headers,
    new Headers(headers),
    Object.fromEntries(inCapitals),
    { ...headers, 'webhook-signature': several.join(' ') },
    signed(ago(290)),
    signed(ago(-290)),
  ]) {
    assert.deepEqual(await verifyWebhook(given, body, secret), content);
    assert.deepEqual(await verifyWebhook(given, Buffer.from(body), secret), content);
    assert.deepEqual(await verifyWebhook(given, body, secret.slice('whsec_'.length)), content);
  }
});

it('a request that is not signed with the secret, is old, or was changed, is refused', async () => {
  const headers = signed();
  const noSignature = { ...headers, 'webhook-signature': undefined };
  const refusals: [given: Record<string, string | undefined>, message: RegExp, text?: string][] = [
    [{}, /no header webhook-id/],
    [noSignature, /no header webhook-signature/],
    [signed(ago(310)), /too old, or a clock/],
    [signed(ago(-310)), /too old, or a clock/],
    [{ ...headers, 'webhook-timestamp': 'now' }, /too old, or a clock/],
    [headers, /No signature is valid/, `${body} `],
    [{ ...headers, 'webhook-id': 'msg_2' }, /No signature is valid/],
    [signed(new Date(), `whsec_${btoa('other')}`), /No signature is valid/],
    [{ ...headers, 'webhook-signature': '' }, /No signature is valid/],
  ];
  for (const [given, message, text = body] of refusals) {
    await assert.rejects(verifyWebhook(given, text, secret), { name: 'WebhookError', message });
  }
  for (const wrong of ['', 'whsec_', 'whsec_?', undefined as unknown as string]) {
    await assert.rejects(verifyWebhook(headers, body, wrong), { name: 'TypeError' });
  }
});

const python = `
import base64, hashlib, hmac, sys, time
secret, body = sys.argv[1].removeprefix('whsec_'), sys.stdin.buffer.read()
sent = str(int(time.time()))
signed = b'.'.join([b'msg_1', sent.encode(), body])
digest = hmac.new(base64.b64decode(secret), signed, hashlib.sha256).digest()
print(sent, 'v1,' + base64.b64encode(digest).decode())`;

it('ten lines of Python sign what is verified', { skip: without('python3') }, async () => {
  const printed = execFileSync('python3', ['-c', python, secret], { input: body }).toString();
  const [timestamp = '', signature = ''] = printed.trim().split(' ');
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  };
  assert.deepEqual(await verifyWebhook(headers, body, secret), content);
});
