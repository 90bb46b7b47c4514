/**
 * Rare events of sharing, and of tokens.
 */
import assert from 'node:assert/strict';
import { scopes } from '../../../src/access/access.ts';
import {
  changeUser,
  loseResponse,
  openPeople,
  openSharing,
  pressAtOnce,
  sharesOf,
} from '../actions.ts';
import { inBrowser, openStore } from '../store.ts';

const dayMs = 86_400_000;

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
  const { page, app } = await openStore(t);
  const bob = await app.token("bob's", { scopes });
  const alice = await app.token('alice', { scopes });
  await app.call('PUT', '/shares/alice', { token: bob, json: { access: 'write' } });
  await app.call('PUT', '/shares/carol', { token: alice, json: { access: 'read' } });
  await openSharing(page);
  await page.getByText('you can see, edit and delete their plants').waitFor();
  await page.getByRole('listitem').getByText('carol').waitFor();
  await page.getByText('Your token cannot change shares. Ask a manager').waitFor();
  assert.equal(await page.getByRole('dialog').getByRole('button').count(), 1, 'only Close');
  // A token that can only share lists the shares too.
  const token = await app.token('alice', { scopes: ['shares:write'] });
  await page.evaluate(`location.hash = 'token=${token}'`);
  await page.getByRole('heading', { name: 'This token cannot list plants' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await openSharing(page);
  await page.getByRole('combobox', { name: 'What carol can do' }).waitFor();
});

inBrowser('a new token grants no more than the one of the page, and cannot get lost', async (t) => {
  const { page } = await openStore(t, {
    access: { scopes: ['plants:read'], expiresAtMs: Date.now() + 40 * dayMs },
  });
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const options = page.locator('#tokens-expiresAt option');
  const lifetimes = await options.allInnerTexts();
  assert.deepEqual(lifetimes.slice(1), ['for 7 days', 'for 30 days']);
  await page.getByRole('checkbox', { name: 'See plants' }).uncheck();
  await page.locator('#tokens-label').fill('x'.repeat(101));
  await page.locator('#tokens-submit').click();
  await page.locator('#tokens-label-fault').getByText('Enter a label of up to 100').waitFor();
  await page.locator('#tokens-label:focus').fill('lost');
  await page.locator('#tokens-submit').click();
  await page.getByText('Choose at least one.').waitFor();
  await page.getByRole('checkbox').check();
  await loseResponse(page, '**/tokens');
  await page.locator('#tokens-submit').click();
  await page.locator('#tokens-copy').waitFor();
  await page.getByRole('button', { name: 'Revoke lost' }).waitFor(); // one token
});

inBrowser('a user who adds plants before they are removed still needs an heir', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes } });
  const bob = await app.token('bob');
  for (let user = 0; user < 60; user++) await app.token(`user ${user}`);
  await openPeople(page);
  await page.getByRole('button', { name: 'Remove bob' }).click();
  assert.equal(await page.locator('#remove-plants-to').isVisible(), false);
  await app.call('POST', '/plants', { token: bob, json: { name: 'Fern' } });
  await page.locator('#remove-submit').click();
  await page.getByText('They have added plants meanwhile.').waitFor();
  await loseResponse(page, '**/users/bob?*'); // so the page repeats the request
  await page.locator('#remove-submit').click();
  await page.getByText('Removed “bob”. Their plants belong to “alice” now.').waitFor();
  const rows = page.locator('#people-users li');
  assert.equal(await rows.count(), 50);
  await page.getByRole('button', { name: 'Show more' }).click();
  await rows.nth(60).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
});

inBrowser('a manager who is none any more is told so', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes } });
  const ann = await app.token('ann', { role: 'manager', scopes });
  await openPeople(page);
  await app.call('PUT', '/users/alice', { token: ann, json: { role: 'member' } });
  await page.getByRole('combobox', { name: 'Role of ann' }).selectOption('member');
  await page.getByRole('alert').getByText('manager').waitFor();
});

inBrowser('revoking the token of the page signs out', async (t) => {
  const { page, app, token } = await openStore(t);
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const current = page.getByRole('listitem').filter({ hasText: 'this page' });
  await current.getByRole('button').click();
  await page.getByText('You are signed out').waitFor();
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  assert.equal((await app.call('GET', '/token', { token })).status, 401);
});
