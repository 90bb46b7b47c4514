/** What one client may take of the service. */

/** Largest body that is read, in bytes. */
export const bodyBytesMax = 16_384;
/** Largest request line and headers together, in bytes. */
export const headerBytesMax = 16_384;
/** How long a request may take to arrive whole. */
export const requestTimeoutMs = 30_000;
/** How long a connection may stand still, also one whose client reads no further. */
export const stillTimeoutMs = 120_000;
/** Connections at a time; one more is closed unanswered. */
export const connectionsMax = 10_000;
