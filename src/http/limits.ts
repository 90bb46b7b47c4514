/**
 * Limits on what one client, or all clients together, can use. They apply to each process separately. The memory of one
 * connection is bounded by the header, the body and the pipelined requests, and by what its user leaves unread.
 */
import { readFileSync } from 'node:fs';

/** Maximum body size. */
export const maxBodyBytes = 16_384;
/** Maximum size of the request line and headers together. */
export const maxHeaderBytes = 16_384;
/** Maximum number of request headers. Even a short one costs a few hundred bytes of memory. */
export const maxHeaders = 100;
/** Maximum number of members of a header that is a list, and of parameters. */
export const maxListMembers = 64;
/** The longest name of a user takes 2,400 characters. */
export const maxPathChars = 4_096;
/** Maximum time for a complete request to arrive, and for the TLS handshake before the first one. */
export const requestTimeoutMs = 30_000;
/** A connection without traffic is closed after this time: if the client stops reading, and by default between requests. */
export const idleTimeoutMs = 72_000;
/** How long a read can take once the client has closed its side of the connection. */
export const halfOpenReadMs = 1_000;
/** Maximum number of pipelined requests: those of a connection that wait for the response to an earlier one. */
export const maxPipelinedRequests = 8;
/** The same for all connections together. Each request can have 16 KiB of headers. */
export const maxPipelinedRequestsTotal = 4_000;

/** Maximum number of requests that wait for changes. Each takes about 8 KiB besides its connection. */
export const maxWaitingRequests = 4_096;

/** Maximum bytes of long responses in memory until clients read them: of all users, and of one user. */
export const maxUnreadBytes = 128 * 1024 * 1024;
export const maxUnreadBytesOfUser = 4 * 1024 * 1024;

/** How long a list waits until its user has read others. */
export const maxUnreadWaitMs = 10_000;

/** Files that the storage, the log and the listening sockets open. */
const maxOtherFiles = 200;

const wantedConnections = 10_000;
/** Maximum number of open connections. */
export const maxConnections = Math.min(
  wantedConnections,
  Math.max(1, maxOpenFiles() - maxOtherFiles),
);
/** Whether the limit of open files allows fewer connections than this program can serve. */
export const lacksOpenFiles = maxConnections < wantedConnections;

/** How many files this process can open (RLIMIT_NOFILE). */
function maxOpenFiles(): number {
  try {
    const [, limit] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(limit ?? Infinity);
  } catch {
    return Infinity; // not Linux
  }
}
