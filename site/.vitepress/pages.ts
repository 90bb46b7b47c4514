/**
 * Which Markdown files are pages, their addresses, and the menu.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DefaultTheme } from 'vitepress';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const index = 'docs/README.md';
/** Pages with an address of their own. The first two are above the groups of the menu, and the others below them. */
const addresses = new Map([
  ['README.md', 'index.md'],
  [index, 'contents.md'],
  ['CONTRIBUTING.md', 'contributing.md'],
  ['CHANGELOG.md', 'changelog.md'],
  ['SECURITY.md', 'security-policy.md'],
  ['bench/results/README.md', 'measurements.md'],
]);

/** The groups of the menu, by their folders in docs/. */
const groups = {
  tutorials: 'Tutorials',
  'how-to': 'How-to guides',
  reference: 'Reference',
  explanation: 'Explanation',
  decisions: 'Decisions',
};

const isIgnored = (file: string) => /(^|\/)(node_modules|\.git)$/.test(file);
const files = globSync('**/*.md', { cwd: root, exclude: isIgnored }).toSorted();
/** Relative to the root of the repository. */
export const pages = files.filter((file) => file.startsWith('docs/') || addresses.has(file));
/** All others: VitePress makes a page of every Markdown file that is not excluded. */
export const excluded = files.filter((file) => !pages.includes(file));

/** The address of a page in the site, as the name of a Markdown file. */
export function addressOf(page: string): string {
  const inDocs = page.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');
  return addresses.get(page) ?? inDocs;
}

/** The pages of each group in the order in which docs/README.md links to them. The titles are their first headings. */
export function menu(): DefaultTheme.SidebarItem[] {
  const listed = readFileSync(join(root, index), 'utf8');
  const place = (page: string) => {
    const at = listed.indexOf(`](${page.slice('docs/'.length)}`);
    return at === -1 ? Infinity : at;
  };
  const ofGroups = Object.entries(groups).map(([folder, text]) => {
    const ofFolder = pages.filter((page) => dirname(page) === `docs/${folder}`);
    const inOrder = ofFolder.toSorted((a, b) => place(a) - place(b) || 0);
    return { text, collapsed: folder === 'decisions', items: inOrder.map(itemOf) };
  });
  const [first = '', second = '', ...others] = [...addresses.keys()];
  return [
    { items: [{ ...itemOf(first), text: 'Overview' }, itemOf(second)] },
    ...ofGroups,
    { text: 'Project', collapsed: true, items: others.map(itemOf) },
  ];
}

function itemOf(page: string): DefaultTheme.SidebarItem {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(root, page), 'utf8')) ?? [];
  if (title === undefined) throw new Error(`${page} has no title.`);
  return { text: title, link: `/${addressOf(page)}` };
}
