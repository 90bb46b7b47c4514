/**
 * Signing in and out with tokens, and tokens that end.
 */
import assert from 'node:assert/strict';
import { makeToken } from '../../../src/access/token.ts';
import {
  addWithRevokedToken,
  assertNames,
  changeUser,
  holdResponse,
  namesOf,
  tabTo,
  toast,
} from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser(
  'a link or a pasted token opens the store, and signing out deletes the token',
  async (t) => {
    const access = { expiresAtMs: Date.now() + 86_400_000 };
    const { page, app, store, token, errors } = await openStore(t, { access });
    assert.equal(new URL(page.url()).hash, '');
    await assertNames(page, shelfNames);
    assert.equal(await page.title(), `${store} · Plant Store`);
    const kept = () =>
      page.evaluate('[Object.values(sessionStorage), Object.values(localStorage)]');
    assert.deepEqual(await kept(), [[token], []]);
    await page.reload();
    await page.getByText('Aloe vera').waitFor();
    await page.getByRole('button', { name: 'alice' }).click();
    const facts = await page.locator('#identity-facts').innerText();
    const rights = 'see plants and add, edit and delete plants';
    for (const fact of ['alice', store, 'Manager', rights, '20']) {
      assert.ok(facts.includes(fact), fact);
    }
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Open your store' }).waitFor();
    assert.deepEqual(await kept(), [[], []]);
    assert.deepEqual(errors, []);

    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    const field = page.locator('#sign-in-token');
    for (const text of ['', 'plant_short', 'secret', `${token}0`]) {
      await field.fill(text);
      await page.getByRole('button', { name: 'Open the store' }).click();
      await page.getByText('Paste the whole token: it starts with "plant_" and has 64').waitFor();
    }
    assert.deepEqual(requests, [], 'the service is not asked');
    await field.fill(makeToken(1));
    await field.press('Enter');
    await page.getByText('There is no such token.').waitFor();
    await field.fill(`${token.slice(0, 20)}${token[20] === 'a' ? 'b' : 'a'}${token.slice(21)}`);
    await field.press('Enter');
    await page.getByText('This is not a Plant Store token. Check that you copied all').waitFor();
    await field.fill('');
    await field.blur();
    await tabTo(page, '#sign-in-token');
    await page.keyboard.insertText(`${app.address}/#token=${token}`);
    await page.keyboard.press('Enter');
    await assertNames(page, shelfNames);
  },
);

inBrowser(
  'a link to another store asks before it opens, and leaves the open one if it does not work',
  async (t) => {
    const { page, app, store, token } = await openStore(t);
    const bob = await app.token('bob');
    await page.evaluate(`location.hash = 'token=${makeToken(1)}'`);
    await toast(page, 'The link did not open a store.').waitFor();
    await page.locator('#rows').getByText('Aloe vera').waitFor();

    const question = page.getByRole('dialog', { name: `Open the store “${store}” as “bob”?` });
    await page.evaluate(`location.hash = 'token=${bob}'`);
    await question.getByRole('button', { name: 'Cancel' }).click();
    await page.waitForURL(`${app.address}/`);
    await page.locator('#rows').getByText('Aloe vera').waitFor();
    assert.equal(await page.evaluate('Object.values(sessionStorage).join()'), token);

    await page.goto('about:blank');
    await page.goto(`${app.address}/#token=${bob}`);
    await question.getByText(`You are signed in as “alice” in the store “${store}”.`).waitFor();
    await question.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('button', { name: 'bob' }).waitFor();
    await page.waitForURL(`${app.address}/`);
    assert.equal(await page.evaluate('Object.values(sessionStorage).join()'), bob);
  },
);

inBrowser('a revoked token loses no typed text, and another one continues', async (t) => {
  const store = await addWithRevokedToken(t);
  const { page, app } = store;
  await page.getByRole('button', { name: 'Not now' }).click();
  assert.equal(await page.locator('#add-name').inputValue(), 'A name that took long to type');
  await page.locator('#add-waiting').getByText('Your token no longer works.').waitFor();
  await page.locator('#add-submit').click();
  await page.getByRole('button', { name: 'Not now' }).click();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Paste another token' }).click();
  const token = await app.token('alice');
  await page.locator('#renew-token').fill('plant_wrong');
  await page.keyboard.press('Enter');
  await page.locator('#renew-token-fault').getByText('Paste the whole token').waitFor();
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await page.locator('#rows').getByText('A name that took long to type').waitFor();
  assert.equal((await namesOf({ ...store, token })).length, 5);
  await page.getByRole('region', { name: 'Connection' }).waitFor({ state: 'hidden' });
});

inBrowser('a late response for one user changes nothing for the next', async (t) => {
  const { page, app } = await openStore(t);
  const { sent, release } = await holdResponse(page, '**/plants?*');
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.locator('#add-name').fill('Of alice');
  await page.keyboard.press('Enter');
  await sent;
  await changeUser(page, await app.token('bob'));
  await page.getByRole('button', { name: 'bob' }).waitFor();
  await release();
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(await page.locator('#add-name').inputValue(), '');
});
