/**
 * The image of deploy/Dockerfile, as far as it can be checked without Docker: its files exist, its health check works,
 * and its service runs as the first process of a container.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { call } from '../support/app.ts';
import { makeCertificate } from '../support/certificate.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { without } from '../support/programs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const instructions = readFileSync(`${root}deploy/Dockerfile`, 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line)?.slice(1) ?? ['', line]);
const nobody = 65_534;
const isolated = ['unshare', '--pid', '--mount', '--fork', '--kill-child'];
const noContainer =
  without('unshare', 'mount') ||
  (spawnSync('unshare', [...isolated.slice(1), 'true']).status !== 0 &&
    'needs root and namespaces');

it('the image runs a supported Node, without root', () => {
  const known = [
    'FROM',
    'WORKDIR',
    'COPY',
    'RUN',
    'ENV',
    'USER',
    'VOLUME',
    'EXPOSE',
    'HEALTHCHECK',
  ];
  for (const [name = '', value] of instructions) {
    assert.ok([...known, 'ENTRYPOINT', 'CMD'].includes(name), `${name} ${value}`);
  }
  for (const base of valuesOf('FROM')) {
    assert.match(base, new RegExp(`^node:${packageFile.devDependencies.node.split('.')[0]}-slim`));
  }
  assert.deepEqual(valuesOf('USER'), ['node']);
});

it('compose.yaml uses files that exist', () => {
  const text = readFileSync(`${root}compose.yaml`, 'utf8');
  const files = text.match(/(?<=dockerfile: )\S+|(?<=- )\.\/[^:]+/g) ?? [];
  assert.equal(files.length, 2);
  for (const file of files) assert.ok(existsSync(`${root}${file}`), file);
});

it(
  'the health check of the image shows whether the service is ready',
  { skip: without('openssl') },
  async (t) => {
    const [health = ''] = valuesOf('HEALTHCHECK');
    assert.ok(health.endsWith('CMD ["node", "/app/deploy/health.js"]'));
    const { cert, key } = makeCertificate(tempFolder(t), 'localhost');
    for (const tls of [{}, { PLANT_STORE_TLS_CERT: cert, PLANT_STORE_TLS_KEY: key }]) {
      const service = await serve(t, ['--database', databaseFile(t).url], { env: tls });
      const env = { ...process.env, ...tls, PLANT_STORE_PORT: new URL(service.address).port };
      const check = () =>
        promisify(execFile)(process.execPath, [`${root}deploy/health.js`], { env });
      await check();
      await service.stop();
      await assert.rejects(check(), { code: 1 });
    }
  },
);

it(
  'the service is the first process of a container with a read-only root, and stops gracefully',
  { skip: noContainer },
  async (t) => {
    const { folder, url } = databaseFile(t);
    chownSync(folder, nobody, nobody);
    const confine = [
      'mount --bind "$0" "$0"', // stays writable
      'mount -o remount,bind,ro /',
      'exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all "$@"',
    ];
    const under = [...isolated, 'sh', '-c', confine.join(' && '), folder];
    const { address, child, ended } = await serve(t, ['--database', url], { under });
    const token = await runOk(['token', 'create', 'alice', '--database', url]);
    const json = { name: 'Monstera' };
    assert.equal((await call(`${address}/plants`, 'POST', { token, json })).status, 201);
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    const status = readFileSync(`/proc/${children.trim()}/status`, 'utf8');
    assert.match(status, /^NSpid:\t\d+\t1$/m);
    process.kill(Number(children), 'SIGTERM');
    assert.equal(await ended, 0);
  },
);

function valuesOf(instruction: string): string[] {
  return instructions.filter(([name]) => name === instruction).map(([, value = '']) => value);
}
