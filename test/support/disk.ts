/**
 * A disk that loses power: reads the log of power-cut.c, and creates the files that a power cut could leave.
 *
 * It models Linux. Writes go to the page cache, in pages of 4,096 bytes. Until the file is synced, each sector
 * of 512 bytes on the disk can have any content since the last sync, independently of other sectors. The size
 * of the file can be any since its last sync.
 *
 * A failed sync marks its pages as clean: readers see the new content, but later syncs skip it until it is
 * written again. Creations, removals and renames reach the disk in order, as in a journal, and at the latest
 * when their folder is synced.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const sectorBytes = 512;
const pageSectors = 8;
const headBytes = 32;

export interface DiskEvent {
  /** Write, Truncate, Create, Unlink, Rename, Link, Sync, Failed sync, sync of the Directory. */
  kind: 'W' | 'T' | 'C' | 'U' | 'R' | 'L' | 'S' | 'F' | 'D';
  /** When it began, as of process.hrtime.bigint(). */
  atNs: bigint;
  ino: bigint;
  /** For a truncation, the new size. */
  offset: number;
  names: string[];
  bytes: Buffer;
}

export function readLog(path: string): DiskEvent[] {
  const log = readFileSync(path);
  const events: DiskEvent[] = [];
  for (let at = 0; at + headBytes <= log.length;) {
    const nameBytes = log.readUInt16LE(at + 28);
    const kind = String.fromCodePoint(log.readUInt8(at + 30)) as DiskEvent['kind']; // power-cut.c writes no others
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

/** A value that the disk can have since event number `at`. 0 is the synced value. */
interface Version<T> {
  at: number;
  value: T;
}

/** Chooses the version that survives the power cut. The oldest one comes first. */
type Pick = <T>(versions: readonly Version<T>[]) => T;

class File {
  /** Synced content. */
  #synced = Buffer.alloc(0);
  /** Versions of each sector that is not synced. */
  readonly #unsynced = new Map<number, Version<Buffer>[]>();
  #sizes: Version<number>[] = [{ at: 0, value: 0 }];
  readonly #dirtyPages = new Set<number>();

  write(at: number, offset: number, bytes: Buffer): void {
    const end = offset + bytes.length;
    for (let sector = Math.floor(offset / sectorBytes); sector * sectorBytes < end; sector++) {
      const content = Buffer.from(this.#cached(sector));
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
      const content = Buffer.from(this.#cached(sector));
      this.#put(at, sector, content.fill(0, Math.max(size - sector * sectorBytes, 0)));
    }
    this.#sizes.push({ at, value: size });
  }

  sync(): void {
    for (const page of this.#dirtyPages) {
      for (let sector = page * pageSectors; sector < (page + 1) * pageSectors; sector++) {
        this.#cached(sector).copy(this.#ensureSector(sector), sector * sectorBytes);
        this.#unsynced.delete(sector);
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
    this.#synced.copy(image);
    for (const [sector, versions] of this.#unsynced) {
      if (sector < sectors) pick(versions).copy(image, sector * sectorBytes);
    }
    return image.subarray(0, size);
  }

  /** The content in the page cache. */
  #cached(sector: number): Buffer {
    return this.#unsynced.get(sector)?.at(-1)?.value ?? this.#syncedSector(sector);
  }

  #put(at: number, sector: number, value: Buffer): void {
    const versions = this.#unsynced.get(sector) ?? [
      { at: 0, value: Buffer.from(this.#syncedSector(sector)) },
    ];
    versions.push({ at, value });
    this.#unsynced.set(sector, versions);
    this.#dirtyPages.add(Math.floor(sector / pageSectors));
  }

  #syncedSector(sector: number): Buffer {
    const start = sector * sectorBytes;
    return this.#ensureSector(sector).subarray(start, start + sectorBytes);
  }

  #ensureSector(sector: number): Buffer {
    const needed = (sector + 1) * sectorBytes;
    if (this.#synced.length < needed) {
      const larger = Buffer.alloc(Math.max(needed, 2 * this.#synced.length));
      this.#synced.copy(larger);
      this.#synced = larger;
    }
    return this.#synced;
  }

  #size(): number {
    return this.#sizes.at(-1)?.value ?? 0;
  }
}

export class Disk {
  readonly #ignoresSyncs: boolean;
  /** All states of the folder that the disk can have. */
  #folders: Version<ReadonlyMap<string, File>>[] = [{ at: 0, value: new Map() }];
  readonly #files = new Map<bigint, File>();
  #done = 0;

  /** With `ignoresSyncs`, the disk reports syncs as done without doing them. */
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
        if (!this.#ignoresSyncs) this.#folders = this.#folders.slice(-1).map(asSynced);
    }
  }

  /** Writes the files that are left after a power cut to `folder`. */
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

/** Of unsynced writes, one power cut in five keeps none, one keeps all, and the others keep a part. */
function pickBy(random: () => number, done: number): Pick {
  const any: Pick = (versions) => valueOf(versions[Math.floor(random() * versions.length)]);
  const last: Pick = (versions) => valueOf(versions.at(-1));
  const writtenUntil = done - Math.floor(random() ** 4 * done);
  const kinds: Pick[] = [
    (versions) => valueOf(versions[0]),
    last,
    any,
    (versions) => (random() < 0.95 ? last(versions) : any(versions)),
    // A slow disk that writes in order.
    (versions) => valueOf(versions.findLast(({ at }) => at <= writtenUntil)),
  ];
  return kinds[Math.floor(random() * kinds.length)] ?? last;
}

function asSynced<T>({ value }: Version<T>): Version<T> {
  return { at: 0, value };
}

function valueOf<T>(version: Version<T> | undefined): T {
  if (version === undefined) throw new Error('there is always a version');
  return version.value;
}
