/**
 * The TLS certificate and its private key: reads and checks their files, and reloads them when they change.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { Server } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { AppOptions } from '../../http/app.ts';
import { createTlsServer, secureContextOptions, type KeyPair } from '../../http/server/tls.ts';
import { metrics } from '../../metrics/metrics.ts';
import { Refusal } from '../../refusal.ts';
import { causeOf, refuseUnreadable } from '../errors.ts';
import type { ServeOptions } from './options.ts';

/** How often the files are checked for a change, and the certificate for its end. */
const checkIntervalMs = 1_000;

/** How many days before its end the service warns, if the certificate is valid for more than twice as long. */
const warningDays = [0, 2, 14];
const dayMs = 86_400_000;

/**
 * Returns a function that creates the server of an app, or undefined for plain HTTP. The files are checked until `stopping`
 * aborts. Rejects with a Refusal if the service cannot use them.
 */
export async function tlsServerFactory(
  { tlsCert: cert, tlsKey: key }: ServeOptions,
  log: Logger,
  stopping: AbortSignal,
): Promise<AppOptions['createServer']> {
  if (cert === undefined || key === undefined) return undefined;
  const files: KeyPair = { cert, key };
  const pair = await readPair(files);
  const certificate = checkPair(files, pair);
  return (options, handler) => {
    const server = createTlsServer(pair, log, options, handler);
    void followCertificate(files, pair, certificate, server, log, stopping);
    return server;
  };
}

/** The certificate that the service would use now. Rejects with a Refusal if it cannot. */
export async function readCertificate(files: KeyPair): Promise<X509Certificate> {
  return checkPair(files, await readPair(files));
}

/**
 * How many days before its end the service warns of it now: 0 if it is not valid, Infinity if there is no warning. Some
 * clients accept one that is not valid, so the service serves it.
 */
export function warningOf({ validFromDate, validToDate }: X509Certificate): number {
  const nowMs = Date.now();
  const daysFrom = (ms: number) => (validToDate.getTime() - ms) / dayMs;
  const validFromMs = validFromDate.getTime();
  const daysLeft = nowMs < validFromMs ? 0 : daysFrom(nowMs);
  const thresholds = warningDays.filter((days) => 2 * days < daysFrom(validFromMs));
  return thresholds.find((days) => daysLeft <= days) ?? Infinity;
}

/**
 * Gives each new certificate to the server. It compares the contents of the files, because tools replace files, links
 * or folders. They replace the certificate and its key one after the other, so a change counts once two checks have
 * seen it.
 */
async function followCertificate(
  files: KeyPair,
  current: KeyPair,
  certificate: X509Certificate,
  server: Server,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  let handled = contentOf(current);
  let seen = handled;
  let warn = validityWarning(certificate, log);
  while (!stopping.aborted) {
    warn();
    await wait(checkIntervalMs, undefined, { ref: false });
    const pair = await readPair(files).catch((error: Error) => error);
    const content = contentOf(pair);
    const isStable = content === seen;
    seen = content;
    if (!isStable || content === handled) continue;
    handled = content;
    try {
      if (pair instanceof Error) throw pair;
      const next = checkPair(files, pair);
      server.setSecureContext(secureContextOptions(pair));
      log.info({ validTo: next.validToDate }, 'certificate reloaded');
      warn = validityWarning(next, log);
    } catch (err) {
      log.error({ err }, 'certificate not reloaded');
    }
  }
}

/** Returns a function to call regularly, which logs each new warning of the certificate. */
function validityWarning(certificate: X509Certificate, log: Logger): () => void {
  const { validFromDate: validFrom, validToDate: validTo } = certificate;
  let warned = Infinity;
  metrics.plant_store_certificate_expiry_timestamp_seconds = validTo.getTime() / 1_000;
  return () => {
    const days = warningOf(certificate);
    const message = days === 0 ? 'certificate not valid now' : 'certificate expires soon';
    if (days < warned) log.warn({ validFrom, validTo, days }, message);
    warned = days;
  };
}

function contentOf(pair: KeyPair | Error): string {
  return pair instanceof Error ? pair.message : pair.cert + pair.key;
}

async function readPair(files: KeyPair): Promise<KeyPair> {
  return {
    cert: await read('certificate', files.cert, '--tls-cert'),
    key: await read('private key', files.key, '--tls-key'),
  };
}

async function read(what: string, path: string, option: string): Promise<string> {
  const advice = `With ${option}, set the path of a file that the service can read.`;
  const refuse = refuseUnreadable(`the ${what} ${path}`, advice);
  const status = await stat(path).catch(refuse);
  // Opening a pipe would block a thread until something writes to it, and the process could not exit.
  if (!status.isFile()) {
    throw new Refusal(`Cannot read the ${what} ${path}: it is not a regular file. ${advice}`);
  }
  return readFile(path, 'utf8').catch(refuse);
}

function checkPair(files: KeyPair, { cert, key }: KeyPair): X509Certificate {
  const certificate = orRefuse(
    () => new X509Certificate(cert),
    () => `${files.cert} is not a certificate in PEM format. Set another one with --tls-cert.`,
  );
  const privateKey = orRefuse(
    () => createPrivateKey(key),
    () =>
      `${files.key} is not a private key in PEM format, or it has a passphrase. Remove a passphrase with "openssl pkey". Set another key with --tls-key.`,
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Refusal(
      `The private key ${files.key} does not belong to the certificate ${files.cert}. Use the two files that were issued together.`,
    );
  }
  orRefuse(
    () => createSecureContext(secureContextOptions({ cert, key })), // checks the chain, and the strength of the key
    (reason) => `The certificate ${files.cert} cannot be used: ${reason}. Use another certificate.`,
  );
  return certificate;
}

function orRefuse<T>(parse: () => T, messageFor: (reason: string) => string): T {
  try {
    return parse();
  } catch (cause) {
    throw new Refusal(messageFor(causeOf(cause)), { cause });
  }
}
