/**
 * The TLS certificate and its private key: reads and checks their files, and reloads them when they change.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { AppOptions } from '../../http/app.ts';
import { createTlsServer, secureContextOptions, type KeyPair } from '../../http/server/tls.ts';
import { Refusal } from '../../refusal.ts';

/** How often the files are checked for a change. */
const checkIntervalMs = 1_000;

interface Certificate extends KeyPair {
  validFrom: Date;
  validTo: Date;
}

interface Context {
  log: Logger;
  /** Once aborted, the files are no longer checked. */
  stopping: AbortSignal;
}

/**
 * Returns a function that creates the server of an app. `files` has the paths of both files. Rejects with a Refusal if
 * the service cannot use them.
 */
export async function tlsServerFactory(
  files: KeyPair,
  context: Context,
): Promise<NonNullable<AppOptions['createServer']>> {
  const certificate = checkPair(files, await readPair(files));
  return (options, handler) => {
    const server = createTlsServer(certificate, context.log, options, handler);
    warnIfNotValidNow(certificate, context.log);
    void followCertificate(files, certificate, context, (changed) =>
      server.setSecureContext(secureContextOptions(changed)),
    );
    return server;
  };
}

/**
 * Calls `use` with each new certificate. It compares the contents of the files, because tools replace files, links or
 * folders. They replace the certificate and its key one after the other, so a change counts once two checks have
 * seen it.
 */
async function followCertificate(
  files: KeyPair,
  current: KeyPair,
  { log, stopping }: Context,
  use: (certificate: Certificate) => void,
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
      use(certificate);
      log.info({ validTo: certificate.validTo }, 'certificate reloaded');
      warnIfNotValidNow(certificate, log);
    } catch (err) {
      log.error({ err }, 'certificate not reloaded');
    }
  }
}

/** Some clients accept such a certificate, so the service serves it. */
function warnIfNotValidNow({ validFrom, validTo }: Certificate, log: Logger): void {
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
  try {
    // Opening a pipe would otherwise block a thread until something writes to it, and the process could not exit.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile() && !stat.isDirectory()) {
      throw new Refusal(
        `Cannot read the ${what} ${path}: it is not a regular file. Set the path of one with ${option}.`,
      );
    }
    return await file.readFile('utf8');
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    const reasons: Record<string, string> = {
      ENOENT: `there is no such file. Set its path with ${option}`,
      EISDIR: `it is a folder. Set the path of the file with ${option}`,
      EACCES: 'permission denied. Allow the user of the service to read it',
    };
    const { code = '', message } = cause as NodeJS.ErrnoException; // node:fs throws only errors of the system
    throw new Refusal(`Cannot read the ${what} ${path}: ${reasons[code] ?? message}.`, { cause });
  }
}

function checkPair(files: KeyPair, { cert, key }: KeyPair): Certificate {
  const certificate = orRefuse(
    () => new X509Certificate(cert),
    () => `${files.cert} is not a certificate in PEM format. Set another with --tls-cert.`,
  );
  const privateKey = orRefuse(
    () => createPrivateKey(key),
    () =>
      /^-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(key)
        ? `The private key ${files.key} is encrypted. Remove its passphrase with "openssl pkey".`
        : `${files.key} is not a private key in PEM format. Set another with --tls-key.`,
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Refusal(
      `The private key ${files.key} does not belong to the certificate ${files.cert}. Use the two files that were issued together.`,
    );
  }
  // Checks the chain, and the strength of the key.
  orRefuse(
    () => createSecureContext(secureContextOptions({ cert, key })),
    (cause) =>
      `The certificate ${files.cert} cannot be used: ${messageOfOpenssl(cause)}. Get another one.`,
  );
  return { cert, key, validFrom: certificate.validFromDate, validTo: certificate.validToDate };
}

function orRefuse<T>(parse: () => T, messageFor: (cause: unknown) => string): T {
  try {
    return parse();
  } catch (cause) {
    throw new Refusal(messageFor(cause), { cause });
  }
}

/** OpenSSL's words for the error, such as "ee key too small". */
function messageOfOpenssl(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'reason' in error ? String(error.reason) : error.message;
}
