/**
 * Certificates for tests, made by openssl.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The paths of a certificate for 127.0.0.1 and plants.example that signs itself, and of its key. */
export interface TestCertificate {
  cert: string;
  key: string;
}

/** Makes `NAME.pem` and `NAME-key.pem` in the folder. The certificate has the name too. */
export function makeCertificate(folder: string, name: string): TestCertificate {
  const { cert, key } = makeKey(folder, name);
  openssl(['req', '-x509', '-key', key, '-out', cert, '-days', '2', ...subject(name)]);
  return { cert, key };
}

/** Makes one that is valid between two times in milliseconds. */
export function makeCertificateFor(
  folder: string,
  name: string,
  fromMs: number,
  toMs: number,
): TestCertificate {
  const { cert, key } = makeKey(folder, name);
  const file = (ending: string) => join(folder, `${name}.${ending}`);
  writeFileSync(file('txt'), '');
  writeFileSync(
    file('cnf'),
    `[ca]\ndefault_ca = test\n[test]\ndatabase = ${file('txt')}\nnew_certs_dir = ${folder}\n` +
      'rand_serial = yes\ndefault_md = sha256\ncopy_extensions = copy\npolicy = any\n[any]\ncommonName = supplied\n',
  );
  openssl(['req', '-new', '-key', key, '-out', file('csr'), ...subject(name)]);
  const asn1 = (ms: number) => new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const dates = ['-startdate', asn1(fromMs), '-enddate', asn1(toMs)];
  const files = ['-config', file('cnf'), '-keyfile', key, '-in', file('csr'), '-out', cert];
  openssl(['ca', '-batch', '-selfsign', '-notext', ...files, ...dates]);
  return { cert, key };
}

/** Encrypts the key, and returns the path of the copy. */
export function encryptKey(key: string): string {
  const encrypted = `${key}.encrypted`;
  openssl(['pkey', '-in', key, '-aes256', '-passout', 'pass:secret', '-out', encrypted]);
  return encrypted;
}

/** The options of a client that trusts only this certificate. */
export function trusting({ cert }: TestCertificate): { ca: Buffer } {
  return { ca: readFileSync(cert) };
}

/** The flags of `serve`. */
export function flagsFor({ cert, key }: TestCertificate): string[] {
  return ['--tls-cert', cert, '--tls-key', key];
}

/** Replaces the files of `target`, as an installer of certificates does: one after the other. */
export function replaceFiles(target: TestCertificate, source: TestCertificate): void {
  for (const file of ['cert', 'key'] as const) {
    copyFileSync(source[file], `${target[file]}.new`);
    renameSync(`${target[file]}.new`, target[file]);
  }
}

function makeKey(folder: string, name: string): TestCertificate {
  const key = join(folder, `${name}-key.pem`);
  openssl(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', key]);
  return { cert: join(folder, `${name}.pem`), key };
}

function subject(name: string): string[] {
  return [
    '-subj',
    `/CN=${name}`,
    '-addext',
    'subjectAltName=IP:127.0.0.1,IP:::1,DNS:plants.example',
  ];
}

function openssl(args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
}
