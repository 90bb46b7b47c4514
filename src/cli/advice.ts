/**
 * What to do if a storage cannot be used, for each kind of refusal.
 */
import { program } from './program.ts';
import type { Refusal, RefusalKind } from '../refusal.ts';

const advice: Record<RefusalKind, string> = {
  'unfinished-copy': `Finish it with "${program} copy --resume", or choose another database.`,
  'no-file': 'Run the command in the folder of the database, or set its path with --database.',
  'cannot-create': 'Choose another path with --database.',
  'not-writable': 'Fix the permissions, or choose another path with --database.',
  'not-a-file': 'Choose a database file with --database.',
  'foreign-file': 'Choose another file with --database.',
  'replaced-file': `Put the original file back, or stop the service and restore the new file with "${program} restore".`,
  'newer-schema': 'Update Plant Store, or choose another database.',
  'missing-schema': `Create its tables with "${program} migrate".`,
  'file-exists': 'Choose another name.',
  'not-a-backup': 'Choose another file.',
  'missing-database': 'Create it with createdb.',
  'tls-unsupported':
    'Enable TLS on the server. If nobody else can read the network traffic, you can add ?sslmode=disable to the address instead.',
  'certificate-of-other-host': 'Use a host name that the certificate covers in the address.',
  'unknown-authority': 'Add the CA certificate to the address with ?sslrootcert=FILE.',
};

/** The message of a refusal, followed by what to do about it. */
export function messageOf({ message, kind }: Refusal): string {
  return kind === undefined ? message : `${message} ${advice[kind]}`;
}
