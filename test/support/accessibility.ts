/**
 * Accessibility by axe-core, which runs in the page.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  id: string;
  nodes: { target: unknown; failureSummary: string }[];
}

/** The violations of the page as it is now, one line each; empty if there are none. Checks these rules, or all. */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Through the debugger, so the content security policy does not apply.
  if (await page.evaluate('!window.axe')) await page.evaluate(axe);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  const found = (await page.evaluate(
    `axe.run(${options}).then((result) => result.violations)`,
  )) as Violation[];
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${JSON.stringify(node.target)} ${node.failureSummary}`),
  );
}

export interface Look {
  width: number;
  colorScheme: 'light' | 'dark';
  /** The rules of axe to check; all if undefined. */
  rules?: readonly string[];
}

/** Each rule once, and in the other looks what depends on them. */
export const looks: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 1280, colorScheme: 'dark', rules: ['color-contrast'] },
  { width: 360, colorScheme: 'light', rules: [] },
];

/** Each rule in every look. */
export const everyLook: readonly Look[] = [1280, 360].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

/** Checks what the page shows now, in each look. */
export async function assertAccessible(
  page: Page,
  state: string,
  inLooks: readonly Look[] = looks,
): Promise<void> {
  for (const { width, colorScheme, rules } of inLooks) {
    const what = `${state}, ${width} px, ${colorScheme}`;
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    if (rules?.length !== 0) assert.deepEqual(await violations(page, rules), [], what);
    const tooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
    assert.equal(await page.evaluate(tooWide), false, `${what}: no sideways scroll`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}
