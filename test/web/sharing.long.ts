import assert from 'node:assert/strict';
import { scopes } from '../../src/access/access.ts';
import { openSharing, sharesOf } from './sharing.ts';
import { changeUser, inBrowser, openStore, pressAtOnce } from './store.ts';

inBrowser('an answer is for its own question, however soon the next one follows', async (t) => {
  const { page, app, token } = await openStore(t, { access: { scopes } });
  for (const user of ['bob', 'carol', 'dave']) {
    await app.call('PUT', `/shares/${user}`, { token, json: { access: 'read' } });
  }
  await openSharing(page);
  await page.getByRole('button', { name: 'End sharing with bob' }).waitFor();
  const end = (user: string) => `[aria-label="End sharing with ${user}"]`;
  const no = '#confirm button';
  const yes = '#confirm-yes';

  await pressAtOnce(page, end('bob'), no, end('carol'));
  await page.getByRole('button', { name: 'End sharing', exact: true }).click();
  await page.getByText('You and “carol” no longer share plants.').waitFor();
  await pressAtOnce(page, end('bob'), no, end('dave'), yes);
  await page.getByText('You and “dave” no longer share plants.').waitFor();
  const given = [{ user: 'bob', access: 'read' }];
  assert.deepEqual(await sharesOf(app, token), { given, received: [] });
});

inBrowser('changes are sent in order, and none in the name of the next user', async (t) => {
  const { page, app, token } = await openStore(t, { access: { scopes } });
  for (const user of ['carol', 'dave']) {
    await app.call('PUT', `/shares/${user}`, { token, json: { access: 'read' } });
  }
  const { promise: isHeld, resolve: release } = Promise.withResolvers<void>();
  const sent: string[] = [];
  await page.route('**/shares/*', async (route) => {
    sent.push(`${route.request().method()} ${route.request().postData() ?? ''}`);
    await isHeld;
    await route.continue().catch(() => {}); // nobody may wait for it any more
  });
  await openSharing(page);
  const access = page.getByRole('combobox', { name: 'What carol can do' });
  for (const choice of ['write', 'read', 'write']) await access.selectOption(choice);
  await page.getByRole('combobox', { name: 'What dave can do' }).selectOption('write');
  await page.locator('#sharing-user').fill('of alice');
  await page.locator('#sharing-submit').click();
  await page.locator('#sharing-submit').click();
  await changeUser(page, await app.token('bob', { scopes }));
  await page.getByRole('button', { name: 'bob' }).waitFor();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  release();
  await openSharing(page);
  await page.getByText('You share with nobody.').waitFor();
  assert.deepEqual(sent, ['PUT {"access":"write"}']);
  assert.equal(await page.locator('#sharing-submit[aria-busy]').count(), 0);
});

inBrowser('a token that cannot share shows the shares, and how to get one that can', async (t) => {
  const { page, app, store } = await openStore(t);
  const bob = await app.token("bob's", { scopes });
  const alice = await app.token('alice', { scopes });
  await app.call('PUT', '/shares/alice', { token: bob, json: { access: 'write' } });
  await app.call('PUT', '/shares/carol', { token: alice, json: { access: 'read' } });
  await openSharing(page);
  await page.getByText('you can see, edit and delete their plants').waitFor();
  await page.getByRole('listitem').getByText('carol').waitFor();
  const command = `npx plant-store token create alice --store ${store}`;
  await page.getByText(`${command} --scope plants:read,plants:write,shares:write`).waitFor();
  assert.equal(await page.getByRole('dialog').getByRole('button').count(), 1, 'only Close');
});

inBrowser('a token that can only share lists the shares too', async (t) => {
  const { page, app, token } = await openStore(t, {
    access: { scopes: ['shares:write'] },
  });
  await app.call('PUT', '/shares/carol', { token, json: { access: 'read' } });
  await openSharing(page);
  await page.getByRole('combobox', { name: 'What carol can do' }).waitFor();
});
