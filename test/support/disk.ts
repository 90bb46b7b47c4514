/**
 * A disk that loses power: reads the log of power-cut.c and builds what such a cut can leave.
 *
 * The model is that of Linux. What is written is in the page cache, in pages of 4,096 bytes. Until a
 * sync of its file succeeds, each sector of 512 bytes on the disk holds any of the contents that it had
 * since the last one, whatever its neighbours hold. A sync that fails marks its pages as clean: later
 * syncs skip them until they are written again, though readers see the new content all the time.
 * The size of a file is any that it had since its last sync. Creations, removals and new names reach
 * the disk in order, as in a journal, and surely once their folder is synced.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const sectorBytes = 512;
const pageSectors = 8;
const headBytes = 32;

export interface DiskEvent {
  /** Write, Truncate, Create, Unlink, Rename, Link, Sync, Failed sync, sync of the Directory. */
  kind: 'W' | 'T' | 'C' | 'U' | 'R' | 'L' | 'S' | 'F' | 'D';
  /** When it began, by the clock of process.hrtime.bigint(). */
  atNs: bigint;
  ino: bigint;
  /** Of a truncation: the new size. */
  offset: number;
  names: string[];
  bytes: Buffer;
}

export function readLog(path: string): DiskEvent[] {
  const log = readFileSync(path);
  const events: DiskEvent[] = [];
  for (let at = 0; at + headBytes <= log.length;) {
    const nameBytes = log.readUInt16LE(at + 28);
    const kind = String.fromCodePoint(log.readUInt8(at + 30)) as DiskEvent['kind']; // of power-cut.c
    const names = log.toString('utf8', at + headBytes, at + headBytes + nameBytes).split('\0');
    const start = at + headBytes + nameBytes;
    const end = start + log.readUInt32LE(at + 24);
    events.push({
      kind,
      atNs: log.readBigUInt64LE(at),
      ino: log.readBigUInt64LE(at + 8),
      offset: Number(log.readBigUInt64LE(at + 16)),
      names,
      bytes: log.subarray(start, end),
    });
    at = end;
  }
  return events;
}

/** Numbers from 0 to 1 that a seed repeats (mulberry32). */
export function randomBy(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Something that the disk can hold, since the event with the number `at`; 0 for what it surely held. */
interface Version<T> {
  at: number;
  value: T;
}

/** Which of the versions, the oldest first, a cut leaves. */
type Pick = <T>(versions: readonly Version<T>[]) => T;

class File {
  /** What the disk surely holds, but for the sectors that are uncertain. */
  #sure = Buffer.alloc(0);
  readonly #uncertain = new Map<number, Version<Buffer>[]>();
  #sizes: Version<number>[] = [{ at: 0, value: 0 }];
  readonly #dirtyPages = new Set<number>();

  write(at: number, offset: number, bytes: Buffer): void {
    const end = offset + bytes.length;
    for (let sector = Math.floor(offset / sectorBytes); sector * sectorBytes < end; sector++) {
      const content = Buffer.from(this.#seen(sector));
      const start = sector * sectorBytes;
      const from = Math.max(offset - start, 0);
      bytes.copy(
        content,
        from,
        start + from - offset,
        Math.min(end - offset, start - offset + 512),
      );
      this.#put(at, sector, content);
    }
    if (end > this.#size()) this.#sizes.push({ at, value: end });
  }

  truncate(at: number, size: number): void {
    const old = this.#size();
    for (let sector = Math.floor(size / sectorBytes); sector * sectorBytes < old; sector++) {
      const content = Buffer.from(this.#seen(sector));
      this.#put(at, sector, content.fill(0, Math.max(size - sector * sectorBytes, 0)));
    }
    this.#sizes.push({ at, value: size });
  }

  sync(): void {
    for (const page of this.#dirtyPages) {
      for (let sector = page * pageSectors; sector < (page + 1) * pageSectors; sector++) {
        this.#seen(sector).copy(this.#roomFor(sector), sector * sectorBytes);
        this.#uncertain.delete(sector);
      }
    }
    this.#dirtyPages.clear();
    this.#sizes = [{ at: 0, value: this.#size() }];
  }

  failSync(): void {
    this.#dirtyPages.clear();
  }

  image(pick: Pick): Buffer {
    const size = pick(this.#sizes);
    const sectors = Math.ceil(size / sectorBytes);
    const image = Buffer.alloc(sectors * sectorBytes);
    this.#sure.copy(image);
    for (const [sector, versions] of this.#uncertain) {
      if (sector < sectors) pick(versions).copy(image, sector * sectorBytes);
    }
    return image.subarray(0, size);
  }

  /** What readers see: the page cache. */
  #seen(sector: number): Buffer {
    return this.#uncertain.get(sector)?.at(-1)?.value ?? this.#sureOf(sector);
  }

  #put(at: number, sector: number, value: Buffer): void {
    const versions = this.#uncertain.get(sector) ?? [
      { at: 0, value: Buffer.from(this.#sureOf(sector)) },
    ];
    versions.push({ at, value });
    this.#uncertain.set(sector, versions);
    this.#dirtyPages.add(Math.floor(sector / pageSectors));
  }

  #sureOf(sector: number): Buffer {
    const start = sector * sectorBytes;
    return this.#roomFor(sector).subarray(start, start + sectorBytes);
  }

  #roomFor(sector: number): Buffer {
    const needed = (sector + 1) * sectorBytes;
    if (this.#sure.length < needed) {
      const larger = Buffer.alloc(Math.max(needed, 2 * this.#sure.length));
      this.#sure.copy(larger);
      this.#sure = larger;
    }
    return this.#sure;
  }

  #size(): number {
    return this.#sizes.at(-1)?.value ?? 0;
  }
}

export class Disk {
  readonly #ignoresSyncs: boolean;
  /** Every state of the folder that the disk can hold. */
  #folders: Version<ReadonlyMap<string, File>>[] = [{ at: 0, value: new Map() }];
  readonly #files = new Map<bigint, File>();
  #done = 0;

  /** With `ignoresSyncs` it is a disk that lies: nothing is ever sure. */
  constructor({ ignoresSyncs = false } = {}) {
    this.#ignoresSyncs = ignoresSyncs;
  }

  apply(event: DiskEvent): void {
    const at = ++this.#done;
    const [name = '', newName = ''] = event.names;
    switch (event.kind) {
      case 'W':
        return this.#file(event).write(at, event.offset, event.bytes);
      case 'T':
        return this.#file(event).truncate(at, event.offset);
      case 'C':
        this.#files.set(event.ino, new File());
        return this.#change(at, (names) => names.set(name, this.#file(event)));
      case 'U':
        return this.#change(at, (names) => names.delete(name));
      case 'R':
      case 'L':
        return this.#change(at, (names) => {
          const file = names.get(name);
          if (file !== undefined) names.set(newName, file);
          if (event.kind === 'R') names.delete(name);
        });
      case 'S':
        return this.#ignoresSyncs ? undefined : this.#file(event).sync();
      case 'F':
        return this.#file(event).failSync();
      case 'D':
        if (!this.#ignoresSyncs) this.#folders = this.#folders.slice(-1).map(surely);
    }
  }

  /** Writes to `folder` what is left when the power fails now. */
  cut(folder: string, random: () => number): void {
    const pick = pickBy(random, this.#done);
    for (const [name, file] of pick(this.#folders)) {
      writeFileSync(join(folder, name), file.image(pick));
    }
  }

  #file({ ino }: DiskEvent): File {
    const file = this.#files.get(ino);
    if (file === undefined) throw new Error(`the log has no creation of the file ${ino}`);
    return file;
  }

  #change(at: number, change: (names: Map<string, File>) => void): void {
    const names = new Map(this.#folders.at(-1)?.value);
    change(names);
    this.#folders.push({ at, value: names });
  }
}

/** One cut in five finds nothing written that was not synced, one everything, others a part of it. */
function pickBy(random: () => number, done: number): Pick {
  const any: Pick = (versions) => one(versions[Math.floor(random() * versions.length)]);
  const last: Pick = (versions) => one(versions.at(-1));
  const until = done - Math.floor(random() ** 4 * done);
  const kinds: Pick[] = [
    (versions) => one(versions[0]),
    last,
    any,
    (versions) => (random() < 0.95 ? last(versions) : any(versions)),
    // A disk that is slow and does all in order.
    (versions) => one(versions.findLast(({ at }) => at <= until)),
  ];
  return kinds[Math.floor(random() * kinds.length)] ?? last;
}

function surely<T>({ value }: Version<T>): Version<T> {
  return { at: 0, value };
}

function one<T>(version: Version<T> | undefined): T {
  if (version === undefined) throw new Error('there is always a version');
  return version.value;
}
