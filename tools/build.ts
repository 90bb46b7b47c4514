/**
 * Builds what is published: dist/ for the package of the service, and the package of the client in dist-client/. Node does
 * not run TypeScript in node_modules.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageFile from '../package.json' with { type: 'json' };
import clientFile from '../src/client/package.json' with { type: 'json' };

const root = fileURLToPath(new URL('..', import.meta.url));

process.chdir(root);
for (const folder of ['dist', 'dist-client']) rmSync(folder, { recursive: true, force: true });
for (const project of ['build', 'build.browser', 'build.client']) {
  execFileSync('tsc', ['--project', `tsconfig.${project}.json`], { stdio: 'inherit' });
}
for (const storage of ['sqlite', 'postgres']) {
  cpSync(`src/${storage}/migrations`, `dist/${storage}/migrations`, { recursive: true });
}
for (const file of globSync('web/**/*.{css,html,svg}', { cwd: 'src' })) {
  const text = readFileSync(join('src', file), 'utf8');
  const target = join('dist', file);
  mkdirSync(dirname(target), { recursive: true });
  // The page names its modules as in a checkout.
  writeFileSync(
    target,
    file.endsWith('.html') ? text.replaceAll(/(?<=(?:src|href)="[^"]*)\.ts(?=")/g, '.js') : text,
  );
}

const { version } = packageFile;
const exports = clientFile.exports.replace('.ts', '.js');
writeFileSync(
  'dist-client/package.json',
  `${JSON.stringify({ ...clientFile, version, exports }, undefined, 2)}\n`,
);
cpSync('src/client/README.md', 'dist-client/README.md');
cpSync('LICENSE', 'dist-client/LICENSE');
