/**
 * The log goes to standard error: a line for people on a terminal, otherwise a line of JSON per entry.
 */
import { pino, type Logger } from 'pino';
import { Refusal } from '../../refusal.ts';
import { shownOn } from '../terminal.ts';

export function createLog(level: string): Logger {
  const { stderr } = process;
  const forPeople = {
    write: (entry: string) => stderr.write(shownOn(stderr, readableLine(entry))),
  };
  return pino({ level }, stderr.isTTY ? forPeople : stderr);
}

/** Local time, level, message and details of an entry; then the stack of an error that needs one. */
function readableLine(entry: string): string {
  const { time, level, pid: _pid, hostname: _hostname, msg, err, ...details } = JSON.parse(entry);
  const clock = new Date(time).toTimeString().slice(0, 8);
  const pairs = Object.entries(details).map(([name, value]) => `${name}=${readableValue(value)}`);
  const words = [clock, (pino.levels.labels[level] ?? '').padEnd(5), msg, ...pairs, err?.message];
  const line = words.filter((word) => word !== undefined).join(' ');
  return err === undefined || err.type === Refusal.name ? `${line}\n` : `${line}\n${err.stack}\n`;
}

/** Quotes text unless it cannot be confused with other words of the line. */
function readableValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
