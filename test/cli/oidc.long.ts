/**
 * serve with an identity provider, in several processes.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { audience, startProvider } from '../support/provider.ts';
import { tokenOf } from './oidc.ts';

it('uses the flags in every worker, with a claim for the store', async (t) => {
  const provider = await startProvider(t);
  const flags = ['--oidc-issuer', provider.issuer, '--oidc-audience', audience];
  const more = ['--oidc-store-claim', 'nursery', '--oidc-client-id', 'page', '--workers', '2'];
  const service = await serve(t, ['--database', databaseFile(t).url, ...flags, ...more]);
  const token = await provider.sign({ nursery: 'south' });
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => tokenOf(service.address, token)),
  );
  for (const answer of answers)
    assert.partialDeepStrictEqual(answer, { status: 200, store: 'south', user: 'alice' });
  const { text } = await call(service.address, 'GET');
  assert.match(text, /&quot;openid plants:read plants:write shares:write&quot;/);
  assert.equal(await service.stop(), 0);
});
