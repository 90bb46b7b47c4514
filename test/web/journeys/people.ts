/**
 * What managers do with the users of their store.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { scopes } from '../../../src/access/access.ts';
import { startApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { assertNames, holdResponse, openPeople, press, scan } from '../actions.ts';
import { browser, inBrowser, openStore, shelfNames } from '../store.ts';

const copied = async (page: Page) => String(await page.evaluate('navigator.clipboard.readText()'));

inBrowser('a manager invites a user, changes their role, and removes them', async (t) => {
  const { page, app, token, errors } = await openStore(t, { access: { scopes } });
  await openPeople(page);
  await page.locator('#people-user').fill(' ann ');
  await press(page, 'Enter');
  await page.locator('#invite-copy:focus').waitFor();
  await page
    .getByText('Send this link to “ann”, or let them scan the code. It works once, until')
    .waitFor();
  await page.getByText('This link opens only on this computer.').waitFor();
  await press(page, 'Enter');
  await page.getByText('Copied.').waitFor();
  const link = await copied(page);
  await page.locator('#invite-code svg').waitFor();
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 740 });
    assert.equal(await scan(page.locator('#invite-code')), link);
  }
  const [address, invitation = ''] = link.split('#token=');
  assert.equal(address, `${app.address}/`);
  const { json } = await app.call('POST', '/tokens', { token: invitation });
  const { token: ann, scopes: granted } = json as { token: string; scopes: string[] };
  assert.deepEqual(granted, ['plants:read', 'plants:write', 'shares:write']);
  const again = await app.call('POST', '/tokens', { token: invitation });
  assert.equal(again.status, 410, 'it works once');
  await app.call('POST', '/plants', { token: ann, json: { name: 'Of ann' } });
  await page.getByRole('button', { name: 'Done' }).click();
  await page.locator('#people-user:focus').waitFor();
  assert.ok(!(await page.content()).includes(invitation));

  const role = page.getByRole('combobox', { name: 'Role of ann' });
  await role.selectOption('manager');
  await page.getByText('“ann” can see and change all plants now.').waitFor();
  const roleOf = async () =>
    ((await app.call('GET', '/token', { token: ann })).json as { role: string }).role;
  assert.equal(await roleOf(), 'manager');
  await role.selectOption('member');
  await page.getByText('“ann” has only their own plants now').waitFor();
  assert.equal(await roleOf(), 'member');

  await page.getByRole('button', { name: 'Remove ann' }).focus();
  await press(page, 'Enter');
  await page.getByLabel('Who gets their 1 plant').fill('bob');
  await press(page, 'Enter');
  await page.getByText('The store has no user with this name. Name another.').waitFor();
  await page.locator('#remove-plants-to:focus').fill('ann');
  await press(page, 'Enter');
  await page.getByText('The user cannot get their own plants.').waitFor();
  await page.locator('#remove-plants-to:focus').fill('alice');
  await press(page, 'Enter');
  await page.getByText('Removed “ann”. Their plants belong to “alice” now.').waitFor();
  await page.locator('#people-users-title:focus').waitFor();
  assert.equal(await page.getByRole('listitem').getByText('ann').count(), 0);
  assert.equal((await app.call('GET', '/plants', { token: ann })).status, 401);
  const owned = (await app.call('GET', '/plants?fields=name,owner', { token })).json as object[];
  assert.deepEqual(owned.at(-1), { name: 'Of ann', owner: 'alice' });
  assert.equal(owned.length, shelfNames.length + 1);
  const unexpected = errors.filter((error) => !/status of 40[04]/.test(error));
  assert.deepEqual(unexpected, []);
});

inBrowser(
  'a link for a class ends with it, and one for somebody else is no accident',
  async (t) => {
    const { page, app, token } = await openStore(t, { access: { scopes } });
    await app.token('class');
    await openPeople(page);
    await page.locator('#people-user').fill('..');
    await press(page, 'Enter');
    await page.getByText('The page cannot use the name “..”.').waitFor();
    await page.locator('#people-user:focus').fill('class');
    await page.locator('#people-rights').selectOption('only see plants');
    await page.locator('#people-expiresAt').selectOption('for 30 days');
    await page.locator('#people-uses').fill('101');
    await press(page, 'Enter');
    await page.getByText('Enter a whole number from 1 to 100.').waitFor();
    await page.locator('#people-uses:focus').fill('30');
    await press(page, 'Enter');
    await page.getByRole('dialog', { name: 'Create another link for “class”?' }).waitFor();
    await press(page, 'Escape');
    await page.locator('#confirm').waitFor({ state: 'hidden' });
    assert.equal(await page.locator('#invite-new').isVisible(), false);
    await page.locator('#people-submit').click();
    await page.locator('#confirm-yes').click();
    await page.getByRole('button', { name: 'Copy text' }).click();
    await page.getByText('Copied.').waitFor();
    const store = ((await app.call('GET', '/token', { token })).json as { store: string }).store;
    const [, name, invitation = '', times] =
      /^Join the store “(.*)” as “class”: http\S+#token=(\w+)\nIt works (\w+) times, until .*\.$/.exec(
        await copied(page),
      ) ?? [];
    assert.deepEqual([name, times], [store, '30']);
    for (let used = 0; used < 2; used++) {
      const { json } = await app.call('POST', '/tokens', { token: invitation });
      const { scopes: granted, expiresAt } = json as { scopes: string[]; expiresAt: string };
      assert.deepEqual(granted, ['plants:read']);
      const days = (Date.parse(expiresAt) - Date.now()) / 86_400_000;
      assert.ok(days > 29.9 && days < 30.1, `${days} days`);
    }
    await page.getByText('1 open invitation').waitFor();
    await page.getByRole('button', { name: 'Withdraw the invitation of class' }).click();
    await page.getByText('No link for “class” works any more.').waitFor();
    assert.equal(await page.getByText('1 open invitation').count(), 0);
    assert.equal((await app.call('POST', '/tokens', { token: invitation })).status, 401);
  },
);

inBrowser('a manager is invited as one, and members have no list of people', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes } });
  await openPeople(page);
  await page.locator('#people-user').fill('ann');
  await page.locator('#people-rights').selectOption('everything, as a manager');
  await page.locator('#people-submit').click();
  await page.getByRole('combobox', { name: 'Role of ann' }).waitFor();
  const invitation = (await page.locator('#invite-link').innerText()).replace(/.*#token=/, '');
  const { json } = await app.call('POST', '/tokens', { token: invitation });
  const { token, scopes: granted } = json as { token: string; scopes: string[] };
  assert.deepEqual(granted, [...scopes]);
  assert.equal((await app.call('GET', '/users', { token })).status, 200);

  const member = await openStore(t, { access: { scopes, role: 'member' } });
  await member.page.locator('#who').click();
  assert.equal(await member.page.getByRole('button', { name: 'People' }).count(), 0);
});

inBrowser('a colleague joins by the code, on a network without HTTPS', async (t) => {
  const app = await startApp(t);
  const manager = await app.token('alice', { role: 'manager', scopes });
  const shop = app.address.replace('127.0.0.1', 'shop.example');
  const { page } = await openPage(await browser(), `${shop}/#token=${manager}`);
  t.after(() => page.context().close());
  await openPeople(page);
  await page.locator('#people-user').fill('ann');
  await press(page, 'Enter');
  await page.locator('#invite-copy:focus').waitFor();
  assert.equal(await page.locator('#invite-local').isVisible(), false);
  await press(page, 'Enter');
  await page.getByText('Copied.').waitFor();
  const link = (await scan(page.locator('#invite-code'))) ?? '';
  assert.ok(link.startsWith(`${shop}/#token=plant_`));
  await page.getByRole('button', { name: 'Done' }).click();
  await press(page, 'Control+v');
  assert.equal(await page.locator('#people-user').inputValue(), link);
  const phone = await (await browser()).newContext({ viewport: { width: 360, height: 740 } });
  t.after(() => phone.close());
  const guest = await phone.newPage();
  await guest.goto(link);
  await guest.getByRole('button', { name: 'Join' }).click();
  await guest.getByRole('button', { name: 'Add your first plant' }).click();
  await guest.getByRole('textbox', { name: 'Name' }).fill('Of ann');
  await press(guest, 'Enter');
  await assertNames(guest, ['Of ann']);
});

inBrowser('a removal in progress is shown again in place of another one', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes } });
  for (const name of ['ann', 'bob']) await app.token(name);
  await openPeople(page);
  const { sent, release } = await holdResponse(page, '**/users/ann');
  await page.getByRole('button', { name: 'Remove ann' }).click();
  await page.locator('#remove-submit').click();
  await sent;
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove bob' }).click();
  await page.getByRole('heading', { name: 'Remove “ann”?' }).waitFor();
  await release();
  await page.getByText('Removed “ann”.').waitFor();
  await page.getByRole('button', { name: 'Remove bob' }).click();
  await page.getByRole('heading', { name: 'Remove “bob”?' }).waitFor();
});
