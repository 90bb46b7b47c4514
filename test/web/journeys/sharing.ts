/**
 * Shares and tokens, and the names of users, plants and tags.
 */
import assert from 'node:assert/strict';
import { scopes } from '../../../src/access/access.ts';
import {
  assertNames,
  deleteChosen,
  loseResponse,
  openBin,
  openSharing,
  press,
  sharesOf,
  switchTab,
  tabTo,
} from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

const dayMs = 86_400_000;

inBrowser('the keyboard alone shares a collection, changes the share, and ends it', async (t) => {
  const { page, app, token, errors } = await openStore(t, { access: { scopes } });
  const bob = await app.token('bob');
  await page.locator('#who').focus();
  await press(page, 'Enter');
  await tabTo(page, '#sharing-open');
  await press(page, 'Enter');
  await page.getByText('You share with nobody.').waitFor();
  await press(page, 'Enter');
  await page.locator('#sharing-user-fault').getByText('Enter a user name of').waitFor();
  for (const [name, fault] of [
    ['..', 'The page cannot use the name “..”.'],
    ['alice', 'You cannot share with yourself.'],
  ] as const) {
    await page.keyboard.insertText(name);
    await press(page, 'Enter');
    await page.getByText(fault).waitFor();
    await press(page, 'Control+a');
  }
  await page.keyboard.insertText(' bob ');
  await press(page, 'Enter');
  await page
    .getByText('“bob” can see all your plants. The spaces around the name were removed.')
    .waitFor();
  assert.deepEqual(((await app.call('GET', '/plants', { token: bob })).json as []).length, 4);

  const access = page.getByRole('combobox', { name: 'What bob can do' });
  await access.focus();
  await press(page, 'ArrowDown');
  await page.getByText('“bob” can see, edit and delete all your plants.').waitFor();
  const given = [{ user: 'bob', access: 'write' }];
  assert.deepEqual(await sharesOf(app, token), { given, received: [] });

  await press(page, 'Tab', 'Enter');
  await page.getByRole('dialog', { name: 'End sharing with “bob”?' }).waitFor();
  await press(page, 'Escape');
  assert.equal(await page.locator(':focus').innerText(), 'End', 'nothing has ended');
  await press(page, 'Enter', 'Tab', 'Enter');
  await page.getByText('You and “bob” no longer share plants.').waitFor();
  await page.getByText('You share with nobody.').waitFor();
  assert.deepEqual(await sharesOf(app, token), { given: [], received: [] });
  await press(page, 'Escape');
  await page.locator('#who:focus').waitFor();
  const unexpected = errors.filter((error) => !/status of 40[04]/.test(error));
  assert.deepEqual(unexpected, []);
});

inBrowser('everyone can see a collection, and somebody who is not there yet will', async (t) => {
  const { page, app, token } = await openStore(t, { access: { scopes } });
  const [bob, carol] = [await app.token('bob'), await app.token('carol')];
  const ofAnn = await app.token('ann', { scopes });
  await app.call('PUT', '/team-share', { token: ofAnn, json: { access: 'read' } });
  await openSharing(page);
  await page.locator('#known-users option').nth(2).waitFor({ state: 'attached' });
  assert.deepEqual(
    await page.locator('#known-users option').evaluateAll((all) => all.map((one) => one.value)),
    ['ann', 'bob', 'carol'],
  );
  await page.getByText('everyone can see their plants').waitFor();
  assert.equal(await page.getByRole('button', { name: 'shares with you' }).count(), 0);
  await page.getByLabel('Everyone, including people who join later').check();
  await page.locator('#sharing-submit').click();
  await page.getByText('Everyone in this store can see all your plants').waitFor();
  const access = page.getByRole('combobox', { name: 'What everyone in this store can do' });
  await access.selectOption('can see, edit and delete');
  await page.getByText('Everyone in this store can see, edit and delete').waitFor();
  for (const guest of [bob, carol]) {
    assert.partialDeepStrictEqual(await sharesOf(app, guest), {
      received: [
        { user: 'alice', access: 'write', team: true },
        { user: 'ann', access: 'read', team: true },
      ],
    });
  }
  await page.getByLabel('Everyone, including people who join later').uncheck();
  await page.locator('#sharing-user').fill('dave');
  await page.locator('#sharing-submit').click();
  await page.getByText('“dave” can see all your plants once there is a user').waitFor();
  await page.getByRole('button', { name: 'End sharing with everyone' }).click();
  await page.getByText('share by name keep what they can do').waitFor();
  await page.getByRole('button', { name: 'End sharing', exact: true }).click();
  await page.getByText('You no longer share with everyone.').waitFor();
  const given = [{ user: 'dave', access: 'read' }];
  assert.partialDeepStrictEqual(await sharesOf(app, token), { given });
  assert.partialDeepStrictEqual(await sharesOf(app, bob), { received: [{ user: 'ann' }] });
});

inBrowser('plants of others are told apart, not changed, and leave with their share', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes, role: 'member' } });
  const bob = await app.token('bob', { scopes });
  await app.call('POST', '/plants', { token: bob, json: { name: 'Of bob' } });
  await app.call('PUT', '/shares/alice', { token: bob, json: { access: 'read' } });
  await openSharing(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await assertNames(page, [...shelfNames, 'Of bob']);
  const owners = page.locator('#rows .owner');
  assert.deepEqual(await owners.allInnerTexts(), ['alice', 'alice', 'alice', 'alice', 'bob']);
  assert.equal(await page.locator('#rows').getByRole('checkbox').count(), 4);
  assert.equal(await page.getByRole('button', { name: 'Edit Of bob' }).count(), 0);
  await page.locator('#rows').getByText('Of bob').click();
  await page.locator('#plant-steps').getByText('Added').waitFor();
  await page.locator('#plant-facts').getByText('bob', { exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
  await press(page, 'Escape', 'Delete', 'F2');
  await page.locator('#grid:focus').waitFor();
  assert.equal(await page.locator('#edit').isVisible(), false);

  await openSharing(page);
  await page.getByText('you can see their plants').waitFor();
  await page.getByRole('button', { name: 'End what bob shares with you' }).click();
  await page.getByText('ask them to share again.').waitFor();
  await switchTab(page, 'hidden'); // what it hears of the change would show that the service responds
  await loseResponse(page, '**/shares/bob'); // so the page repeats the request
  await page.getByRole('button', { name: 'End sharing', exact: true }).click();
  await page.locator('#sharing .waiting').getByText('The service does not respond.').waitFor();
  await page.getByText('Nobody shares with you.').waitFor();
  await page.locator('#sharing-received-title:focus').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await assertNames(page, shelfNames);
});

inBrowser('the keyboard alone creates a token, copies it, and revokes it', async (t) => {
  const { page, app, errors } = await openStore(t);
  const statusOf = async (token: string) => (await app.call('GET', '/plants', { token })).status;
  await page.locator('#who').focus();
  await press(page, 'Enter');
  await tabTo(page, '#tokens-open');
  await press(page, 'Enter');
  await page.getByRole('listitem').getByText('this page').waitFor();
  await page.getByRole('button', { name: 'Revoke Created ' }).first().waitFor(); // it has no label
  await page.keyboard.insertText('phone');
  await press(page, 'Tab', 'ArrowDown', 'Tab', 'Tab', 'Space'); // for 7 days, without writing
  await press(page, 'Enter');
  await page.locator('#tokens-copy:focus').waitFor();
  await press(page, 'Enter');
  await page.getByText('Copied.').waitFor();
  const token = String(await page.evaluate('navigator.clipboard.readText()'));
  const { json } = await app.call('GET', '/token', { token });
  const { expiresAt, ...granted } = json as { scopes: string[]; expiresAt: string };
  assert.deepEqual(granted.scopes, ['plants:read']);
  const lifetimeMs = Date.parse(expiresAt) - Date.now();
  assert.ok(lifetimeMs > 6.9 * dayMs && lifetimeMs <= 7 * dayMs);

  await press(page, 'Escape');
  await page.locator('#who:focus').waitFor();
  await press(page, 'Enter');
  await tabTo(page, '#tokens-open');
  await press(page, 'Enter');
  await page.getByText(token).waitFor(); // it is not lost before it is saved
  await page.getByRole('listitem').getByText('phone').waitFor();
  await tabTo(page, '#tokens-hide');
  await press(page, 'Enter');
  await page.locator('#tokens-label:focus').waitFor();
  assert.ok(!(await page.content()).includes(token));

  assert.equal(await statusOf(token), 200);
  await page.getByRole('button', { name: 'Revoke phone' }).focus();
  await press(page, 'Enter');
  await page.getByRole('dialog', { name: 'Revoke the token “phone”?' }).waitFor();
  await press(page, 'Tab', 'Enter');
  await page.getByText('Revoked “phone”.').waitFor();
  assert.equal(await statusOf(token), 401);
  await page.getByText('Expired and revoked').click();
  await page.getByRole('listitem').getByText('phone').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Revoke phone' }).count(), 0);
  assert.deepEqual(errors, []);
});

inBrowser('no text of a user looks like another one, or moves the words around it', async (t) => {
  const trick = '\u202eא'; // writes what follows from right to left
  const [bob, tag] = [`bob${trick}`, `tag${trick}`];
  const { page, app, token } = await openStore(t, {
    plants: [{ name: `Ivy${trick}`, tag }],
    access: { scopes },
  });
  const ofBob = await app.token(bob, { scopes, role: 'manager' });
  await app.call('POST', '/plants', { token: ofBob, json: { name: trick, tag } });
  await app.call('PATCH', '/plants/1', { token: ofBob, json: { name: `Fern${trick}` } });
  await app.call('PUT', '/shares/alice', { token: ofBob, json: { access: 'read' } });
  await app.call('POST', '/tokens', { token, json: { label: trick } });

  /** Asserts that the page shows the text, and hides nothing in what it shows and what it calls its controls. */
  const shows = async (text: string) => {
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    const shown: string = await page.evaluate(`[document.title, document.body.innerText,
      ...[...document.querySelectorAll('[aria-label]')].map((each) => each.ariaLabel)].join('\\n')`);
    assert.doesNotMatch(shown, /[\u202a-\u202e\u2066-\u2069]/u);
  };
  const button = (name: string) => page.getByRole('button', { name, exact: true });

  await openSharing(page);
  await button('End what bob<U+202E>א shares with you').click();
  await shows('End sharing with “bob<U+202E>א”?');
  await press(page, 'Escape', 'Escape');
  await shows('bob<U+202E>א');
  await page.locator('#rows .name').first().click();
  await shows('Renamed from “Ivy<U+202E>א” to “Fern<U+202E>א”');
  assert.equal(await page.locator('#plant-steps bdi bdi bdi').count(), 2, 'each is isolated');
  await button('Close').click();
  await page.locator('#rows .tag-button').first().click();
  await button('Export').click();
  await shows('All plants with the tag “tag<U+202E>א”');
  await press(page, 'Escape');
  for (const at of [0, 1]) await page.locator('#rows input').nth(at).click();
  await deleteChosen(page);
  await shows('No plants with the tag “tag<U+202E>א”');
  await page.locator('#filter-clear').click();
  await openBin(page);
  await page.getByRole('button', { name: /^Show 2 plants/ }).click();
  await shows('tag<U+202E>א · owned by bob<U+202E>א · deleted by alice');
  await button('Restore Fern<U+202E>א').click();
  await shows('Restored “Fern<U+202E>א”.');
  await button('Close').click();
  await page.locator('#who').click();
  await button('Tokens').click();
  await button('Revoke <U+202E>א').waitFor();
  await shows('<U+202E>א');
});
