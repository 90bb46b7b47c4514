/**
 * Channels of node:diagnostics_channel that publish the service's metrics. Subscribe to them by name, in a module
 * loaded with `node --import`. Publishers check `hasSubscribers` first, so unused channels cost nothing.
 */
import { channel } from 'node:diagnostics_channel';
import type { ProblemKind } from '../problem.ts';

interface Publisher<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/** Published for each problem response, even if the request was not valid HTTP. */
export const errorChannel: Publisher<{ kind: ProblemKind }> = channel('plant-store:error');

/** Published after each commit of writes, by the process that requested them. */
export interface CommitMessage {
  /** Number of writes in the transaction, including those that were refused, such as a taken id. */
  writes: number;
  /** Milliseconds since the first of these writes was queued. */
  durationMs: number;
}
export const commitChannel: Publisher<CommitMessage> = channel('plant-store:commit');
