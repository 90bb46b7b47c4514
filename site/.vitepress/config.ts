/**
 * The site: the Markdown files of this repository, unchanged, as pages with a menu and a search. `npm run docs` builds it
 * in site/dist, and any web server can serve that folder, below any path. Nothing is loaded from other servers.
 */
import { defineConfig } from 'vitepress';
import { anchorOf } from '../../tools/anchor.ts';
import { tabIcon } from '../../tools/reference/icon.ts';
import { resolveLinks } from './links.ts';
import { addressOf, excluded, menu, root } from './pages.ts';

export default defineConfig({
  title: 'Plant Store',
  description: 'A small, durable HTTP service that stores plants',
  lang: 'en-US',
  base: './',
  srcDir: root,
  srcExclude: excluded,
  rewrites: addressOf,
  outDir: 'dist',
  cacheDir: 'node_modules/.vitepress',
  head: [['link', { rel: 'icon', href: tabIcon }]],
  markdown: {
    anchor: { slugify: anchorOf },
    // Markdown as GitHub shows it: there, braces after a heading are text.
    attrs: false,
    emoji: false,
    languageAlias: { caddy: 'text', haproxy: 'text' }, // no rules for their colors
    config: resolveLinks,
  },
  themeConfig: {
    search: {
      provider: 'local',
      // Pages about use come before those about reasons.
      options: {
        miniSearch: {
          searchOptions: { boostDocument: (id) => (String(id).includes('/decisions/') ? 0.5 : 1) },
        },
      },
    },
    notFound: { quote: 'Use the search or the menu to find the page.', linkText: 'First page' },
    sidebar: menu(),
    outline: [2, 3],
    externalLinkIcon: true,
  },
  vite: {
    publicDir: false,
    build: { assetsInlineLimit: 0 }, // a picture stays a file, which can be opened alone
    // Vue is in site/node_modules, where pages outside of site/ would not find it.
    environments: {
      ssr: { build: { rolldownOptions: { external: ['vue', 'vue/server-renderer'] } } },
    },
  },
});
