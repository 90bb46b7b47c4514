/**
 * The checks of a database file. They change neither the file nor those that belong to it: a file of their own shows how
 * fast the disk syncs.
 */
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Refusal } from '../refusal.ts';
import type { Check, Finding } from '../shared/finding.ts';
import { systemCode } from '../shared/system-errors.ts';
import { sqlChecks } from '../sql/doctor.ts';
import { toSqlite, toSqliteValue } from './dialect.ts';
import { prepare } from './driver.ts';
import { refusalFor } from './errors.ts';
import { migrations, readSchema } from './file/migrate.ts';
import { refuseMissing } from './file/open.ts';
import { realPath, refuseUnusablePath } from './file/path.ts';

const mib = 1_024 * 1_024;
/** Three times what the WAL needs. It is larger only if a reader is in the way of checkpoints. */
const walMib = 256;
/** By the type of statfs: CIFS, SMB, NFS and Ceph, over which SQLite's locks and shared memory do not work. */
const networks = [0xff534d42, 0xfe534d42, 0x6969, 0xc36400];
/** 9p and FUSE, which can be a network; overlay and tmpfs, which end with a container or the machine. */
const doubtful = [0x1021997, 0x65735546, 0x794c7630, 0x1021994];

export function fileChecks(path: string, resources: AsyncDisposableStack): Check[] {
  let database: DatabaseSync | undefined;
  const tried = <T>(work: (file: string) => T): T => {
    try {
      return work(locate(path));
    } catch (error) {
      if (systemCode(error) !== 'EACCES') throw refusalFor(error, path);
      throw new Refusal(`You cannot access ${path}. Run doctor as root or as its owner.`);
    }
  };
  const ofFile = (check: (file: string) => Finding) => () => tried(check);
  const read = <T>(work: (open: DatabaseSync, schema: Finding) => T) =>
    tried((file) => {
      database ??= resources.use(openUnchanged(file));
      return work(database, migrations.findingOf(readSchema(database), path));
    });
  return [
    ['file', 'the path of the database, and who owns its files', ofFile(owners)],
    ['file-system', 'whether the file is on a local disk', ofFile(fileSystem)],
    ['space', 'free space on the disk', ofFile(space)],
    ['sync', 'how long the disk takes to sync a write', ofFile(sync)],
    ['wal', 'the size of the -wal file', ofFile(wal)],
    ['schema', 'whether this version can use the tables', () => read((_, schema) => schema)],
    ...sqlChecks(new URL('doctor.sql', import.meta.url), async ({ text }, values) =>
      read((open) => prepare<never>(open, toSqlite(text)).all(...values.map(toSqliteValue))),
    ),
  ];
}

function locate(path: string): string {
  refuseMissing(path);
  refuseUnusablePath(path);
  return realPath(path);
}

/**
 * Opens the file without creating others. If no process has it open, SQLite would leave -wal and -shm files behind, or
 * complete what a killed process has left in them.
 */
function openUnchanged(file: string): DatabaseSync {
  const isOpen = isOpenAnywhere(file);
  if (!isOpen && sizeOf(`${file}-wal`) > 0) {
    throw new Refusal(
      `${file} was not closed: its newest changes are in ${file}-wal. ` +
        'Start the service, or run "npx plant-store store list": both complete the file.',
    );
  }
  const address = `${pathToFileURL(file).href}?immutable=${isOpen ? 0 : 1}`;
  return new DatabaseSync(address, { readOnly: true, timeout: 1_000 });
}

/** Each connection has a lock on the file. */
function isOpenAnywhere(file: string): boolean {
  try {
    return fs.readFileSync('/proc/locks', 'utf8').includes(`:${fs.statSync(file).ino} `);
  } catch {
    return fs.existsSync(`${file}-shm`); // not Linux
  }
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** The service runs as the owner of the folder, even if this command does not. Windows has no modes. */
function owners(file: string): Finding {
  const folder = dirname(file);
  const { uid, mode } = fs.statSync(folder);
  const isOpenTo = (bits: number, of: number) => process.getuid !== undefined && (of & bits) !== 0;
  if (isOpenTo(0o006, fs.statSync(file).mode)) {
    return ['warn', `every user of this machine can access ${file}`, `chmod o= '${file}'*`];
  }
  if (isOpenTo(0o002, mode) && !isOpenTo(0o1000, mode)) {
    return ['warn', `every user of this machine can replace ${file}`, `chmod o-w '${folder}'`];
  }
  const isShared = (mode & 0o022) !== 0; // such as /tmp
  const fix = `chown --reference='${folder}' '${file}'*`;
  const files = ['', '-wal', '-shm'].map((suffix) => file + suffix);
  const other = files.find((each) => {
    const found = fs.statSync(each, { throwIfNoEntry: false });
    return found !== undefined && found.uid !== uid;
  });
  if (isShared || other === undefined) return ['ok', file];
  return ['warn', `${other} and its folder have different owners`, fix];
}

function fileSystem(file: string): Finding {
  const { type } = fs.statfsSync(file);
  const detail = `${dirname(file)} is on a file system of the type 0x${type.toString(16)} (statfs)`;
  const fix = 'Stop the service, move the database to a disk, and set its path with --database.';
  if (networks.includes(type)) return ['fail', `${detail}, a network`, fix];
  if (!doubtful.includes(type)) return ['ok', dirname(file)];
  return ['warn', `${detail}: a network, memory, or the layer of a container`, fix];
}

function space(file: string): Finding {
  const { bavail, bsize } = fs.statfsSync(file);
  const free = Math.floor((bavail * bsize) / mib);
  const status = free < 16 ? 'fail' : free < walMib ? 'warn' : 'ok';
  return [status, `${free} MiB are free`, `du -xh '${dirname(file)}' | sort -h | tail`];
}

function sync(file: string): Finding {
  const probe = `${file}.doctor-${process.pid}`;
  const descriptor = fs.openSync(probe, 'wx', 0o600);
  fs.unlinkSync(probe); // at once, so that nothing stays behind if this process is killed
  const page = Buffer.alloc(4_096);
  const timesUs = Array.from({ length: 15 }, () => {
    const startedMs = performance.now();
    fs.writeSync(descriptor, page);
    fs.fsyncSync(descriptor);
    return Math.round((performance.now() - startedMs) * 1_000);
  });
  fs.closeSync(descriptor);
  const fastestUs = Math.min(...timesUs); // other programs only delay the rest
  const status = fastestUs < 20 || fastestUs > 100_000 ? 'warn' : 'ok';
  const remark = fastestUs < 20 ? ': no disk is so fast, so a power failure can lose changes' : '';
  return [status, `a sync takes ${fastestUs} µs${remark}`, 'Move the database to another disk.'];
}

function wal(file: string): Finding {
  const size = Math.ceil(sizeOf(`${file}-wal`) / mib);
  return [size > walMib ? 'warn' : 'ok', `${size} MiB`, `lsof '${file}' # a reader that hangs`];
}
