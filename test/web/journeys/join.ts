/**
 * Joining a store with an invitation.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { scopes } from '../../../src/access/access.ts';
import { openPage } from '../../support/browser.ts';
import { idOf } from '../../support/tokens.ts';
import { holdResponse, loseResponse, toast } from '../actions.ts';
import { browser, countOn, inBrowser, openStore, type OpenStore } from '../store.ts';

/** A store of alice, and what she can do for bob. */
async function setUp(t: TestContext) {
  const opened = await openStore(t, { access: { scopes } });
  const { app, token } = opened;
  const invite = async (json = {}) => {
    const body = { invitation: {}, ...json };
    const { json: invited } = await app.call('POST', '/users/bob/tokens', { token, json: body });
    return (invited as { token: string }).token;
  };
  return { ...opened, invite };
}

/** Opens a link in a browser of another person. */
async function openLink(t: TestContext, { app }: OpenStore, token: string) {
  const opened = await openPage(await browser(), `${app.address}/#token=${token}`);
  t.after(() => opened.page.context().close());
  return opened;
}

inBrowser('an invitation is used with a press, once, also if its response is lost', async (t) => {
  const opened = await setUp(t);
  const { app, store, invite } = opened;
  const invitation = await invite();
  const { page, errors } = await openLink(t, opened, invitation);
  await page.getByRole('heading', { name: `Join the store “${store}” as “bob”` }).waitFor();
  await page.getByText('You were invited as a member').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Join' }).waitFor();
  const uses = async () => {
    const { json } = await app.call('GET', '/token', { token: invitation });
    return (json as { invitation: { uses: number } }).invitation.uses;
  };
  assert.equal(await uses(), 1, 'opening the link uses nothing');

  await loseResponse(page, '**/tokens');
  await page.getByRole('button', { name: 'Join' }).click();
  await page.getByText('The service does not respond.').first().waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(await uses(), 0);
  assert.equal(await page.evaluate('location.hash'), '');
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  await page.locator('#tokens-active').getByText('this page').waitFor();
  assert.equal(await page.locator('#tokens-active li').count(), 1, 'the invitation has ended');
  assert.deepEqual(
    errors.filter((error) => !error.startsWith('Failed to load resource')),
    [],
  );

  const { page: other } = await openLink(t, opened, invitation);
  await other.getByText('This invitation was used. Ask whoever sent it').waitFor();
  const revoked = await invite();
  await app.storage.identity.revokeToken(idOf(revoked), Date.now());
  const { page: late } = await openLink(t, opened, revoked);
  await late.getByText('This link has expired, or was revoked. Ask whoever sent it').waitFor();
});

inBrowser('who is signed in is asked before they join as somebody else', async (t) => {
  const { page, store, invite } = await setUp(t);
  const hash = `token=${await invite()}`;
  await page.evaluate(`location.hash = 'tag=indoor'`);
  await page.locator('#filter-tag').waitFor();
  await page.evaluate(`location.hash = '${hash}'`);
  const question = page.getByRole('dialog', { name: `Join the store “${store}” as “bob”` });
  await question.getByText(`You are signed in as “alice” in the store “${store}”.`).waitFor();
  await question.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await page.evaluate('location.hash'), '#tag=indoor', 'the table stays as it is');
  await page.locator('#rows').getByText('Monstera').waitFor();
  await page.evaluate(`location.hash = '${hash}'`);
  await question.getByRole('button', { name: 'Join' }).click();
  await page.locator('#who').getByText('bob').waitFor();
  await page.getByRole('heading', { name: 'No plants with the tag “indoor”' }).waitFor();
});

inBrowser('a link opens a plant, also through signing in', async (t) => {
  const { page, token } = await openStore(t);
  const dialog = page.getByRole('dialog', { name: 'Ficus lyrata' });
  await page.evaluate(`location.hash = 'plant=2'`);
  await dialog.waitFor();
  await page.reload();
  await dialog.getByRole('button', { name: 'Close' }).click();
  assert.equal(await page.evaluate('location.hash'), '');
  const { sent, release } = await holdResponse(page, '**/plants/2?*');
  await page.evaluate(`location.hash = 'plant=2'`);
  await sent;
  await page.evaluate(`location.hash = 'plant=1'`);
  const last = page.getByRole('dialog', { name: 'Monstera deliciosa' });
  await last.waitFor();
  await release();
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))');
  await last.getByRole('button', { name: 'Close' }).click();
  await page.evaluate(`location.hash = 'plant=40'`);
  await toast(page, 'There is no plant with the id 40').waitFor();
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  await page.evaluate(`location.hash = 'tag=indoor&plant=2'`);
  await page.locator('#sign-in-token').fill(token);
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await countOn(page, '2 plants').waitFor();
});
