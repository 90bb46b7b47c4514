/** Limits on what one client, or all clients together, can use. They apply to each process separately. */
import { readFileSync } from 'node:fs';

/** Maximum body size. */
export const bodyBytesMax = 16_384;
/** Maximum size of the request line and headers together. */
export const headerBytesMax = 16_384;
/** Maximum number of request headers. Each costs a few hundred bytes of memory, however short it is. */
export const headersMax = 100;
/** Maximum time until a request has arrived completely. */
export const requestTimeoutMs = 30_000;
/** How often Node checks for requests that exceed it. */
export const requestCheckMs = 1_000;
/** Maximum time without traffic on a connection, even if the client has stopped reading a response. */
export const inactivityTimeoutMs = 120_000;
/** Pipelined requests: those of a connection that wait for the response to an earlier one. */
export const pipelinedRequestsMax = 8;
/** Pipelined requests of all connections together; each can have 16 KiB of headers. */
export const pipelinedRequestsTotalMax = 4_000;

/**
 * How long, and for how many bytes, a closing connection is still read. Without that, the system could reset
 * the connection before the client has read the last response (RFC 9112, section 9.6).
 */
export const lingerMs = 2_000;
export const lingerBytesMax = 16 * 1024 * 1024;

/** Bytes of long responses that wait in memory until clients read them: of all users, and of one user. */
export const unreadBytesMax = 64 * 1024 * 1024;
export const unreadBytesOfUserMax = 4 * 1024 * 1024;

/** Files that the storage, the log and the listening sockets open. */
const otherFilesMax = 200;

/** Maximum number of open connections. */
export const connectionsMax = Math.min(10_000, Math.max(1, openFilesMax() - otherFilesMax));

/** How many files this process can open (RLIMIT_NOFILE). */
function openFilesMax(): number {
  try {
    const [, limit] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(limit ?? Infinity);
  } catch {
    return Infinity; // not Linux
  }
}
