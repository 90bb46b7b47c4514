/**
 * Makes the files of a release in `release/`: the packages of the service and of the client, the SBOM of the service, and
 * SHA256SUMS.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageFile from '../package.json' with { type: 'json' };

const folder = 'release';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
// The first builds both.
for (const source of ['.', './dist-client']) {
  execFileSync('npm', ['pack', source, '--pack-destination', folder], { stdio: 'inherit' });
}
const sbom = execFileSync(process.execPath, ['tools/sbom.ts']);
writeFileSync(join(folder, `plant-store-${packageFile.version}.cdx.json`), sbom);

const sums = readdirSync(folder).map((name) => {
  const hash = createHash('sha256')
    .update(readFileSync(join(folder, name)))
    .digest('hex');
  return `${hash}  ${name}\n`;
});
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
console.log(`The release is in ${folder}/.`);
