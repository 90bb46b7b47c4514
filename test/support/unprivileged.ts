/**
 * Commands as a user who is not root, because root bypasses file permissions.
 */
import { run } from './command.ts';

const nobody = 65_534;

/** The options of a command that runs as an unprivileged user. */
export const unprivileged = process.getuid?.() === 0 ? { uid: nobody } : {};

/** The `skip` option of tests with such commands: a reason if that user cannot run the program. */
export const withoutUnprivileged = await run(['--version'], unprivileged).then(
  ({ status }) => status !== 0 && 'an unprivileged user cannot run the program in this folder',
  () => 'an unprivileged user cannot run this Node',
);
