import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { until } from '../../support/until.ts';
import { assertNames, holdResponse, loseResponse, press, switchTab, toast } from '../actions.ts';
import { inBrowser, openStore } from '../store.ts';

const two = [
  { name: 'Ficus', tag: 'hall' },
  { name: 'Aloe', tag: 'hall' },
];

/** Opens the row of a plant, and waits until the plant is read. */
async function edit(page: Page, name: string): Promise<void> {
  const read = page.waitForResponse((response) => response.request().method() === 'GET');
  await page.getByRole('button', { name: `Edit ${name}` }).click();
  await read;
}

inBrowser('edits a row in place, and Escape leaves it as it was', async (t) => {
  const { page, app, token, errors } = await openStore(t, { plants: two });
  const plant = async () => (await app.call('GET', '/plants/2', { token })).json;
  await edit(page, 'Aloe');
  await page.locator('#edit-name').fill('Lost');
  await press(page, 'Escape');
  await page.locator('#grid:focus').waitFor();
  assert.equal(await page.locator('#edit').isVisible(), false);

  await edit(page, 'Aloe');
  await page.locator('#edit-name').fill('Aloe vera');
  await page.locator('#edit-tag').fill('');
  await press(page, 'Enter');
  await assertNames(page, ['Ficus', 'Aloe vera']);
  await page.locator('#grid:focus').waitFor();
  await page.locator('#grid[aria-activedescendant=row-1]').waitFor();
  assert.deepEqual(await plant(), { name: 'Aloe vera', tag: '' });

  await page.locator('#rows').getByText('Aloe vera').dblclick();
  await page.locator('#edit-name:focus').waitFor();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.locator('#edit-name').fill(' ');
  await page.locator('#edit-tag').fill('x'.repeat(101));
  await press(page, 'Enter');
  await page.locator('#edit-name-fault').getByText('Enter a name of').waitFor();
  await page.locator('#edit-tag-fault').getByText('Enter a tag of').waitFor();
  await page.locator('#edit-name:focus').waitFor();
  // Another row does not take what was typed.
  await page.getByRole('button', { name: 'Edit Ficus' }).click();
  await page.locator('#edit-name:focus').waitFor();
  await page.locator('#edit-name').fill('Aloe');
  await page.locator('#edit-tag').fill('sill');
  await page.getByRole('button', { name: 'Save' }).click();
  await assertNames(page, ['Ficus', 'Aloe']);
  assert.deepEqual(await plant(), { name: 'Aloe', tag: 'sill' });
  assert.deepEqual(errors, []);
});

inBrowser('an unsaved edit stays with its plant', async (t) => {
  const { page } = await openStore(t);
  const [editor, title] = [page.locator('#edit'), page.locator('#edit-title')];
  const search = async (text: string, names: readonly string[]) => {
    await page.getByLabel('Search').fill(text);
    await assertNames(page, names);
  };
  const places = async () => {
    const row = await page.locator('#rows .row').first().boundingBox();
    const fields = await editor.boundingBox();
    assert.ok(row && fields);
    return { rowPx: row.y, fieldsPx: fields.y, endPx: fields.y + fields.height };
  };
  await edit(page, 'Ficus');
  await page.locator('#edit-name').fill('Ficus elastica');
  await page.getByRole('button', { name: 'Edit Aloe' }).click();
  await toast(page, 'First save or cancel your change to “Ficus lyrata”.').waitFor();
  await page.locator('#edit-name:focus').waitFor();
  await title.waitFor({ state: 'hidden' });

  await search('vulgaris', ['Thymus vulgaris']);
  await title.getByText('“Ficus lyrata” is not among these plants. Save or cancel').waitFor();
  await page.getByRole('group', { name: 'Ficus lyrata' }).waitFor();
  const above = await places();
  assert.ok(above.endPx <= above.rowPx, 'it covers no other plant');
  await search('lyrata', ['Ficus lyrata']);
  await title.waitFor({ state: 'hidden' });
  const over = await places();
  assert.equal(over.fieldsPx, over.rowPx, 'it is back over its row');
  await page.getByLabel('Search').fill('nothing');
  await page.getByRole('heading', { name: 'No plants containing “nothing”' }).waitFor();
  await title.waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await toast(page, 'Saved “Ficus elastica”.').waitFor();
  await editor.waitFor({ state: 'hidden' });
  await search('elastica', ['Ficus elastica']);
});

inBrowser('what is typed before the plant is read stays', async (t) => {
  const { page, app, token } = await openStore(t, { plants: two });
  await switchTab(page, 'hidden'); // what it hears of a change would show it in the row
  const type = async (name: string, text: string) => {
    const { sent, release } = await holdResponse(page, '**/plants/2?*');
    await page.getByRole('button', { name: `Edit ${name}` }).click();
    await page.keyboard.insertText(text);
    await sent;
    await release();
  };
  await type('Aloe', 'Typed');
  await press(page, 'Enter');
  await assertNames(page, ['Ficus', 'Typed']);
  await app.call('PATCH', '/plants/2', { token, json: { name: 'Theirs' } });
  await type('Typed', 'Mine');
  await page.getByText('Somebody changed this plant meanwhile: “Theirs” (hall).').waitFor();
  await press(page, 'Enter');
  await page.getByRole('button', { name: 'Keep theirs' }).click();
  await assertNames(page, ['Ficus', 'Theirs']);
});

inBrowser('names can be read and edited beside owners in a narrow table', async (t) => {
  const { page, app } = await openStore(t, { plants: [] });
  const token = await app.token('bob');
  await app.call('POST', '/plants', { token, json: { name: 'Of bob', tag: 'hall' } });
  await page.locator('#rows .owner').getByText('bob').waitFor(); // of others alone, too
  await edit(page, 'Of bob');
  for (const width of [640, 700, 760]) {
    await page.setViewportSize({ width, height: 700 });
    for (const place of ['#rows .name', '#edit-name']) {
      const box = await page.locator(place).boundingBox();
      assert.ok(box && box.width >= 150, `${place} at ${width}: ${box?.width}`);
    }
  }
});

inBrowser('two people who edit one plant lose nothing silently', async (t) => {
  const { page, app, token } = await openStore(t, { plants: two });
  await switchTab(page, 'hidden');
  const bob = await app.token('bob', { role: 'manager' });
  const change = (json: object) => app.call('PATCH', '/plants/1', { token: bob, json });
  const save = async (name: string) => {
    await page.locator('#edit-name').fill(name);
    await press(page, 'Enter');
  };
  await edit(page, 'Ficus');
  await change({ name: 'Ficus of bob' });
  await save('Ficus of alice');
  await page.getByText('Somebody changed this plant meanwhile: “Ficus of bob” (hall).').waitFor();
  // Enter, pressed once more in haste, does not overwrite the other one.
  await press(page, 'Enter');
  await assertNames(page, ['Ficus of bob', 'Aloe']);
  await page.locator('#grid:focus').waitFor();

  // The newest text is edited, not the one of the row.
  await change({ name: 'Ficus lyrata' });
  await edit(page, 'Ficus of bob');
  const name = page.locator('#edit-name');
  await until('the field has it', async () => (await name.inputValue()) === 'Ficus lyrata');
  await change({ tag: 'sill' });
  await save('Mine');
  await page.getByText('meanwhile: “Ficus lyrata” (sill).').waitFor();
  await change({ name: 'Newer' });
  await page.getByRole('button', { name: 'Save mine' }).click();
  await page.getByText('meanwhile: “Newer” (sill).').waitFor();
  await page.getByRole('button', { name: 'Save mine' }).click();
  await assertNames(page, ['Mine', 'Aloe']);
  const { json } = await app.call('GET', '/plants/1', { token });
  const merged = { name: 'Mine', tag: 'sill' };
  assert.deepEqual(json, merged, 'what only the other one has changed stays');
});

inBrowser('a plant that is gone when it is edited leaves the table', async (t) => {
  const { page, app, token } = await openStore(t, { plants: two });
  await switchTab(page, 'hidden');
  await app.call('DELETE', '/plants/2', { token });
  await page.getByRole('button', { name: 'Edit Aloe' }).click();
  await toast(page, 'Someone has deleted “Aloe”').waitFor();
  await assertNames(page, ['Ficus']);
  await page.locator('#grid:focus').waitFor();

  await edit(page, 'Ficus');
  await page.locator('#edit-name').fill('Mine');
  await app.call('DELETE', '/plants/1', { token });
  await press(page, 'Enter');
  await page.locator('#edit-choice').getByText('Someone has deleted “Ficus”').waitFor();
  assert.equal(await page.locator('#edit-name').inputValue(), 'Mine', 'what was typed stays');
  await assertNames(page, ['Ficus']); // so that the fields cover no other row
  await page.getByRole('button', { name: 'Restore and save' }).click();
  await assertNames(page, ['Mine']);
  await page.locator('#edit').waitFor({ state: 'hidden' });
  const { json } = await app.call('GET', '/plants/1', { token });
  assert.deepEqual(json, { name: 'Mine', tag: 'hall' });

  await edit(page, 'Mine');
  await page.locator('#edit-name').fill('Mine too');
  await app.call('DELETE', '/plants/1', { token });
  await press(page, 'Enter');
  await page.getByRole('button', { name: 'Restore and save' }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(await page.locator('#edit').isVisible(), false);
});

inBrowser(
  'the response to an edit is lost, and the change is not taken for somebody else’s',
  async (t) => {
    const { page } = await openStore(t, { plants: two });
    await edit(page, 'Ficus');
    await switchTab(page, 'hidden'); // what it hears of the change would show that the service responds
    await loseResponse(page, '**/plants/1?*');
    await page.locator('#edit-name').fill('Ficus lyrata');
    await press(page, 'Enter');
    await page.getByRole('button', { name: 'Try now' }).click();
    await assertNames(page, ['Ficus lyrata', 'Aloe']);
    await page.locator('#grid:focus').waitFor();
  },
);

inBrowser('an edit through a proxy that changes entity tags says so', async (t) => {
  const { page } = await openStore(t);
  await page.route('**/plants/1?*', async (route) => {
    if (route.request().method() !== 'GET') return route.continue();
    const response = await route.fetch();
    const etag = response.headers()['etag']?.replace(/"$/, '-gzip"') ?? '';
    await route.fulfill({ response, headers: { ...response.headers(), etag } });
  });
  await edit(page, 'Monstera');
  await page.locator('#edit-name').fill('Fern');
  await press(page, 'Enter');
  await page.locator('#edit .failure').getByText('switch compression off there').waitFor();
});
