/**
 * Links between files of the repository. The Markdown has relative ones, which also work on GitHub and in the package.
 *
 * - Links to pages lead to their addresses in the site.
 * - A file that is no page, such as a test, is not in the site. Its link leads to the repository if package.json names
 *   one. Otherwise it becomes text: the path of the file.
 * - A link to nothing fails the build.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type Token from 'markdown-it/lib/token.mjs';
import type { MarkdownRenderer } from 'vitepress';
import { addressOf, pages, root } from './pages.ts';

const { repository }: { repository?: { url: string } } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const repositoryUrl = repository?.url.replaceAll(/^git\+|\.git$/g, '');

export function resolveLinks(md: MarkdownRenderer): void {
  md.core.ruler.push('links_of_repository', ({ tokens, env }) => {
    const file = relative(root, env.realPath ?? env.path);
    for (const { children } of tokens) {
      for (const [at, token] of children?.entries() ?? []) {
        if (token.type === 'link_open') resolveLink(file, token, children?.slice(at + 1) ?? []);
      }
    }
  });

  function resolveLink(file: string, link: Token, following: Token[]): void {
    const [path = '', anchor] = String(link.attrGet('href')).split('#');
    if (path === '' || /^[a-z]+:/.test(path)) return; // on the same page, or in another site
    const target = join(dirname(file), decodeURI(path)).replace(/\/$/, '');
    if (!existsSync(join(root, target))) {
      throw new Error(`${file} links to ${target}, which does not exist.`);
    }
    const hash = anchor === undefined ? '' : `#${anchor}`;
    const page = pages.find((one) => one === target || one === `${target}/README.md`);
    if (page !== undefined) {
      link.attrSet('href', relative(dirname(addressOf(file)), addressOf(page)) + hash);
    } else if (repositoryUrl !== undefined) {
      link.attrSet('href', `${repositoryUrl}/blob/HEAD/${target}${hash}`);
    } else replaceLink(link, following, target);
  }

  /** Shows the path after the text of the link, or in its place if the text is a part of the path. */
  function replaceLink(link: Token, following: Token[], path: string): void {
    const length = following.findIndex(({ type }) => type === 'link_close');
    const inside = following.slice(0, length);
    const text = inside.map(({ content }) => content).join('');
    const isPart = path.includes(text);
    const shown = `<code>${md.utils.escapeHtml(path)}</code>`;
    for (const token of isPart ? inside : []) replaceBy('', token);
    replaceBy(isPart ? shown : ` (${shown})`, following[length]);
    replaceBy('', link);
  }
}

function replaceBy(html: string, token?: Token): void {
  if (token === undefined) throw new Error('A link has no end.');
  Object.assign(token, { type: 'html_inline', tag: '', nesting: 0, content: html, children: null });
}
