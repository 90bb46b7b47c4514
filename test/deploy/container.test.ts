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
import { makeCertificate } from '../support/certificate.ts';
import { serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { without } from '../support/programs.ts';
import { withoutUnprivileged } from '../support/unprivileged.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const instructions = readFileSync(`${root}deploy/Dockerfile`, 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line)?.slice(1) ?? ['', line]);
const nobody = 65_534;
const isolated = ['unshare', '--pid', '--mount-proc', '--fork', '--kill-child'];
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
  'the service is the first process of a container with a read-only root, is healthy, and stops gracefully',
  { skip: noContainer || without('openssl') || withoutUnprivileged },
  async (t) => {
    assert.ok(valuesOf('HEALTHCHECK')[0]?.endsWith('CMD ["node", "/app/deploy/health.js"]'));
    const { folder, url } = databaseFile(t);
    const certificate = makeCertificate(folder, 'localhost');
    for (const file of [folder, ...Object.values(certificate)]) chownSync(file, nobody, nobody);
    const confine = [
      'mount --bind "$0" "$0"', // stays writable
      'mount -o remount,bind,ro /',
      'exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all "$@"',
    ];
    const alone = [...isolated.slice(1), process.execPath, `${root}deploy/health.js`];
    const { status, stderr } = spawnSync('unshare', alone, { encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, /^No service is listening/);
    const under = [...isolated, 'sh', '-c', confine.join(' && '), folder];
    for (const tls of [[], ['--tls-cert', certificate.cert, '--tls-key', certificate.key]]) {
      const { child, ended } = await serve(t, ['--database', url, ...tls], { under });
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
      const pid = children.trim();
      assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^NSpid:\t\d+\t1$/m);
      const enter = ['--target', pid, '--pid', '--mount', '-S', `${nobody}`, '-G', `${nobody}`];
      const check = () =>
        promisify(execFile)('nsenter', [...enter, process.execPath, `${root}deploy/health.js`]);
      await check();
      process.kill(Number(pid), 'SIGSTOP');
      await assert.rejects(check(), { code: 1 });
      process.kill(Number(pid), 'SIGCONT');
      process.kill(Number(pid), 'SIGTERM');
      assert.equal(await ended, 0);
    }
  },
);

function valuesOf(instruction: string): string[] {
  return instructions.filter(([name]) => name === instruction).map(([, value = '']) => value);
}
