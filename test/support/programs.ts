/**
 * The programs that tests need, and the packages of Debian that have them. A test without its program is skipped,
 * but fails in CI. To print the packages that are missing on this machine:
 *
 *   node test/support/programs.ts
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const packages = {
  bash: 'bash',
  caddy: 'caddy',
  cc: 'gcc libc6-dev',
  chromium: 'chromium',
  'chromium-headless-shell': 'chromium-headless-shell',
  curl: 'curl',
  fish: 'fish',
  grep: 'grep',
  haproxy: 'haproxy',
  mount: 'mount',
  nginx: 'nginx-light',
  openssl: 'openssl',
  pdftoppm: 'poppler-utils',
  pgbouncer: 'pgbouncer',
  prlimit: 'util-linux',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  ps: 'procps',
  python3: 'python3',
  rclone: 'rclone',
  'redis-server': 'redis-server',
  restic: 'restic',
  script: 'bsdutils',
  sed: 'sed',
  strace: 'strace',
  'systemd-analyze': 'systemd',
  unshare: 'util-linux',
  wrk: 'wrk',
};

export type Program = keyof typeof packages;
export const programs = Object.keys(packages) as Program[]; // the keys above

/** The `skip` option of a test that needs these programs: what to install, or false. */
export function without(...needed: readonly Program[]): string | false {
  const missing = needed.filter((program) => !isInstalled(program));
  if (missing.length === 0) return false;
  const install = missing.map((program) => packages[program]).join(' ');
  return skipOutsideCi(
    `${missing.join(' and ')} is missing. On Debian: apt-get install ${install}`,
  );
}

/** The reason, for the `skip` option of a test. Throws it in CI. */
export function skipOutsideCi(reason: string): string {
  if (process.env['CI'] !== undefined) throw new Error(reason);
  return reason;
}

function isInstalled(program: Program): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

if (import.meta.main) {
  const missing = programs.filter((program) => !isInstalled(program));
  console.log([...new Set(missing.map((program) => packages[program]))].join(' '));
}
