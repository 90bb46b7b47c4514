/**
 * What to type where a storage cannot be used, by the kind of its refusal.
 */
import type { Refusal, RefusalKind } from '../refusal.ts';

const advice: Record<RefusalKind, string> = {
  'unfinished-copy': 'Finish it with "plant-store copy --resume", or use another.',
  'no-place': 'Choose another place with --database.',
  'not-writable': 'Choose another place with --database, or mend the permissions.',
  'not-a-file': 'Name a database file with --database.',
  'foreign-file': 'Choose another file with --database.',
  'replaced-file':
    'Put the first one back, or stop the service and restore the other with "plant-store restore".',
  'newer-schema': 'Update Plant Store, or choose another database.',
  'no-schema': '"plant-store migrate" makes one.',
  'name-taken': 'Name another.',
  'no-backup': 'Name another.',
  'no-database': 'Make it with createdb.',
  'no-tls':
    'Set that up, or say ?sslmode=disable in the address where nobody else listens in between.',
  'certificate-of-other-host': 'Use a name that it was made for in the address.',
  'unknown-authority': 'Name the authority that signed it with ?sslrootcert=FILE in the address.',
};

/** The whole message for people: what is so, and what to type. */
export function messageOf({ message, kind }: Refusal): string {
  return kind === undefined ? message : `${message} ${advice[kind]}`;
}
