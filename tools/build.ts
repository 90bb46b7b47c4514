/**
 * Builds what is published: dist/ for the package of the service, and the package of the client in dist-client/. Node does
 * not run TypeScript in node_modules.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import packageFile from '../package.json' with { type: 'json' };
import clientFile from '../src/client/package.json' with { type: 'json' };
import { referencePage } from './reference/page.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

process.chdir(root);
for (const folder of ['dist', 'dist-client']) rmSync(folder, { recursive: true, force: true });
for (const project of ['build', 'build.browser', 'build.client', 'build.client-cjs']) {
  execFileSync('tsc', ['--project', `tsconfig.${project}.json`], { stdio: 'inherit' });
}
for (const file of globSync(['**/*.sql', 'web/**/*.{css,png,webmanifest}'], { cwd: 'src' }))
  cpSync(`src/${file}`, `dist/${file}`);
const pages = { index: readFileSync('src/web/index.html', 'utf8'), reference: referencePage() };
for (const [name, text] of Object.entries(pages)) {
  // The pages name their modules as in a checkout.
  const compiled = text.replaceAll(/(?<=(?:src|href)="[^"]*)\.ts(?=")/g, '.js');
  writeFileSync(`dist/web/${name}.html`, compiled);
}

const { version } = packageFile;
const entry = clientFile.exports.replace('.ts', '.js');
const commonJs = entry.replace('./', './cjs/');
const clientPackage = {
  ...clientFile,
  version,
  // Node has one copy for both kinds of modules. Jest and older bundlers know nothing of the first condition.
  exports: { 'module-sync': entry, require: commonJs, default: entry },
  main: commonJs,
  module: entry,
  types: entry.replace('.js', '.d.ts'),
};
for (const [file, content] of Object.entries({
  'dist-client/package.json': clientPackage,
  'dist-client/cjs/package.json': { type: 'commonjs' },
})) {
  writeFileSync(file, `${JSON.stringify(content, undefined, 2)}\n`);
}
cpSync('src/client/README.md', 'dist-client/README.md');
cpSync('LICENSE', 'dist-client/LICENSE');
