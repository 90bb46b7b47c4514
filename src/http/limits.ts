/** What one client, and all of them together, can take of the service. Each process has these to itself. */
import { readFileSync } from 'node:fs';

/** Largest body that is read, in bytes. */
export const bodyBytesMax = 16_384;
/** Largest request line and headers together, in bytes. */
export const headerBytesMax = 16_384;
/** Headers of a request. Each costs some hundred bytes of memory, however short it is. */
export const headersMax = 100;
/** How long a request can take to arrive whole. */
export const requestTimeoutMs = 30_000;
/** How often Node looks for requests that took longer. */
export const requestCheckMs = 1_000;
/** How long a connection can stand still, even if its client reads no further. */
export const stillTimeoutMs = 120_000;
/** Requests of one connection that wait while another is answered. */
export const waitingRequestsMax = 8;
/** And of all connections together: each can have headers of 16 KiB. */
export const allWaitingRequestsMax = 4_000;

/**
 * How long, and for how many bytes, a connection that is closing is still read from. If it were closed at
 * once, the system would reset it, and the client could lose the last answer (RFC 9112, section 9.6).
 */
export const lingerMs = 2_000;
export const lingerBytesMax = 16 * 1024 * 1024;

/** Bytes of long answers that wait in memory for their readers: of all users, and of one. */
export const unreadBytesMax = 64 * 1024 * 1024;
export const unreadBytesOfUserMax = 4 * 1024 * 1024;

/** Open files that the storage, the log and the listening sockets need. */
const otherFilesMax = 200;

/** Connections at a time. */
export const connectionsMax = Math.min(10_000, Math.max(1, openFilesMax() - otherFilesMax));

/** How many files this process can have open (RLIMIT_NOFILE), if the system says so. */
function openFilesMax(): number {
  try {
    const [, limit] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(limit ?? Infinity);
  } catch {
    return Infinity; // not Linux
  }
}
