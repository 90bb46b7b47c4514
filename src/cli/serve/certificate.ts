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
import { Refusal } from '../../refusal.ts';
import { causeOf, refuseUnreadable } from '../errors.ts';

/** How often the files are checked for a change. */
const checkIntervalMs = 1_000;

/**
 * Returns a function that creates the server of an app. `files` has the paths of both files, which are checked until
 * `stopping` aborts. Rejects with a Refusal if the service cannot use them.
 */
export async function tlsServerFactory(
  files: KeyPair,
  log: Logger,
  stopping: AbortSignal,
): Promise<NonNullable<AppOptions['createServer']>> {
  const pair = await readPair(files);
  const certificate = checkPair(files, pair);
  return (options, handler) => {
    const server = createTlsServer(pair, log, options, handler);
    warnIfNotValidNow(certificate, log);
    void followCertificate(files, pair, server, log, stopping);
    return server;
  };
}

/**
 * Gives each new certificate to the server. It compares the contents of the files, because tools replace files, links
 * or folders. They replace the certificate and its key one after the other, so a change counts once two checks have
 * seen it.
 */
async function followCertificate(
  files: KeyPair,
  current: KeyPair,
  server: Server,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  let handled = contentOf(current);
  let seen = handled;
  while (!stopping.aborted) {
    await wait(checkIntervalMs, undefined, { ref: false });
    const pair = await readPair(files).catch((error: Error) => error);
    const content = contentOf(pair);
    const isStable = content === seen;
    seen = content;
    if (!isStable || content === handled) continue;
    handled = content;
    try {
      if (pair instanceof Error) throw pair;
      const certificate = checkPair(files, pair);
      server.setSecureContext(secureContextOptions(pair));
      log.info({ validTo: certificate.validToDate }, 'certificate reloaded');
      warnIfNotValidNow(certificate, log);
    } catch (err) {
      log.error({ err }, 'certificate not reloaded');
    }
  }
}

/** Some clients accept such a certificate, so the service serves it. */
function warnIfNotValidNow(certificate: X509Certificate, log: Logger): void {
  const { validFromDate: validFrom, validToDate: validTo } = certificate;
  const nowMs = Date.now();
  if (nowMs < validFrom.getTime() || nowMs > validTo.getTime()) {
    log.warn({ validFrom, validTo }, 'certificate not valid now');
  }
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
    `${files.cert} is not a certificate in PEM format. Set another one with --tls-cert.`,
  );
  const privateKey = orRefuse(
    () => createPrivateKey(key),
    `${files.key} is not a private key in PEM format, or it has a passphrase. Remove a passphrase with "openssl pkey". Set another key with --tls-key.`,
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Refusal(
      `The private key ${files.key} does not belong to the certificate ${files.cert}. Use the two files that were issued together.`,
    );
  }
  try {
    createSecureContext(secureContextOptions({ cert, key })); // checks the chain, and the strength of the key
  } catch (cause) {
    throw new Refusal(
      `The certificate ${files.cert} cannot be used: ${causeOf(cause)}. Use another certificate.`,
      { cause },
    );
  }
  return certificate;
}

function orRefuse<T>(parse: () => T, message: string): T {
  try {
    return parse();
  } catch (cause) {
    throw new Refusal(message, { cause });
  }
}
