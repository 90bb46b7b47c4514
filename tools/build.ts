/**
 * Makes dist/, what is published: Node takes no TypeScript below node_modules, and the reference page
 * is a development dependency in a checkout.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assets } from '../src/http/docs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const swaggerUi = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

process.chdir(root);
rmSync('dist', { recursive: true, force: true });
execFileSync('tsc', ['--project', 'tsconfig.build.json'], { stdio: 'inherit' });
for (const storage of ['sqlite', 'postgres']) {
  cpSync(`src/${storage}/migrations`, `dist/${storage}/migrations`, { recursive: true });
}
mkdirSync('dist/http/swagger-ui');
for (const file of [...Object.keys(assets), 'LICENSE', 'NOTICE']) {
  cpSync(join(swaggerUi, file), join('dist/http/swagger-ui', file));
}
