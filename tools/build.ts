/**
 * Builds dist/ for the published package: Node does not run TypeScript in node_modules.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

process.chdir(root);
rmSync('dist', { recursive: true, force: true });
for (const project of ['tsconfig.build.json', 'tsconfig.build.browser.json']) {
  execFileSync('tsc', ['--project', project], { stdio: 'inherit' });
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
