/**
 * What errors of the operating system mean, by their codes (man 3 errno).
 */

/** The code, such as ENOENT, of an error thrown by node:fs; undefined for others. */
export function systemCode(error: unknown): string | undefined {
  const isOfSystem = error instanceof Error && 'syscall' in error && 'code' in error;
  return isOfSystem ? String(error.code) : undefined;
}

const reasons: Record<string, string> = {
  EACCES: 'permission denied',
  EEXIST: 'another process has created it',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic links lead back to it',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'the name is too long',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
};

/** The reason in words, or the code. `ifMissing` describes ENOENT. Undefined if it is another error. */
export function systemReason(error: unknown, ifMissing: string): string | undefined {
  const code = systemCode(error);
  if (code === undefined) return undefined;
  return code === 'ENOENT' ? ifMissing : (reasons[code] ?? code);
}
