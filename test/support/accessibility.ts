/**
 * Accessibility by axe-core, which runs in the page.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  id: string;
  nodes: { target: unknown; failureSummary: string }[];
}

/** The violations of the page as it is now, one line each; empty if there are none. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe); // through the debugger, so the content security policy does not apply
  const found = (await page.evaluate(
    'axe.run().then((result) => result.violations)',
  )) as Violation[];
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${JSON.stringify(node.target)} ${node.failureSummary}`),
  );
}
