/**
 * `plant-store doctor`: named checks of what a service depends on, each with a fix.
 */
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { lacksOpenFiles, maxConnections } from '../../http/limits.ts';
import { UsageError } from '../../refusal.ts';
import type { Check, Finding } from '../../shared/finding.ts';
import { lastBackupAt } from '../../sqlite/backup-folder.ts';
import { databaseCommand } from '../admin/command.ts';
import { databaseOption, openChecks } from '../database.ts';
import { reasonOf } from '../errors.ts';
import { flag, isFrom, parseBaseUrl, parseDurationMs } from '../options.ts';
import { failWith, print } from '../output.ts';
import { printableJson } from '../terminal.ts';

const dayMs = 86_400_000;
const lookInLog = 'Start the service. If it runs, look for "backup failed" in its log.';

export function addDoctorCommand(plantStore: Command): void {
  databaseCommand(plantStore, 'doctor', ['plant-store doctor', 'plant-store doctor sync --json'])
    .description('find what is wrong, and how to fix it; fails if one of its checks fails')
    .argument('[name]', 'only this check')
    .option('--list', 'list the checks, and what each looks at')
    .addOption(flag('--base-url <url>', 'public URL of the service').argParser(parseBaseUrl))
    .addOption(flag('--tls-cert <file>', 'certificate of the service'))
    .addOption(flag('--tls-key <file>', 'private key of the certificate'))
    .addOption(flag('--backup-dir <folder>', 'folder of the backups that the service makes'))
    .addOption(flag('--backup-every <duration>', 'how often it does').argParser(parseDurationMs))
    .action(async function check(only, options) {
      const { database, json, list, backupDir, backupEvery = dayMs } = options;
      const { addressChecks } = await import('./public-address.ts');
      await using resources = new AsyncDisposableStack();
      const checks: Check[] = [
        ...(await openChecks(database, resources)),
        ['descriptors', 'how many files a process can open', descriptors],
        ['backup', 'the age of the last verified backup', () => backup(backupDir, backupEvery)],
        ...addressChecks(resources, options),
      ];
      const chosen = checks.filter(([name]) => only === undefined || name === only);
      if (chosen.length === 0) throw new UsageError(`There is no check ${only}. See --list.`);
      const listed = chosen.map<Result>(([name, detail]) => ({ name, detail }));
      const results: Result[] = [];
      const isSet = isFrom(this, 'database', 'cli');
      const option = isSet ? ` --database '${databaseOption(database)}'` : '';
      for await (const result of list ? listed : resultsOf(chosen)) {
        // A fix is to be typed as it is.
        if (result.fix)
          result.fix = result.fix.replaceAll(/npx plant-store [^;":]+/g, `$&${option}`);
        results.push(result);
        if (!json) print(textOf(result));
      }
      if (json) print(printableJson(results));
    });
}

interface Result {
  name: string;
  status?: Finding[0];
  detail: string;
  fix?: string;
}

async function* resultsOf(checks: readonly Check[]): AsyncGenerator<Result, void> {
  const failures = new Map<string, string>();
  for (const [name, , run] of checks) {
    const [status, detail, fix] = await Promise.try(run).catch((error: unknown): Finding => {
      const reason = reasonOf(error);
      if (reason === undefined) throw error;
      const earlier = failures.get(reason);
      if (earlier !== undefined) return ['skipped', `${earlier} failed`];
      failures.set(reason, name);
      const [what = reason, ...advice] = reason.split(/(?<=[^.]\.) /); // as all messages are
      return ['fail', what, advice.join(' ') || 'Search docs/how-to/troubleshooting.md for it.'];
    });
    if (status === 'fail') failWith(1);
    const isFine = status === 'ok' || status === 'skipped';
    yield { name, status, detail, ...(!isFine && fix && { fix }) };
  }
}

function textOf({ name, status, detail, fix }: Result): string {
  const line = `${status?.padEnd(8) ?? ''}${name}: ${detail}`;
  return fix === undefined ? line : `${line}\n        Fix: ${fix}`;
}

function descriptors(): Finding {
  const detail = `enough for ${maxConnections} connections`;
  return [lacksOpenFiles ? 'warn' : 'ok', detail, 'ulimit -n 16384; in a unit: LimitNOFILE=16384'];
}

async function backup(folder: string | undefined, everyMs: number): Promise<Finding> {
  if (folder === undefined) return ['skipped', '--backup-dir is not set'];
  const last = await lastBackupAt(folder);
  if (last === undefined) return ['fail', `none in ${resolve(folder)}`, lookInLog];
  const ageMs = Date.now() - last.getTime();
  const detail = `begun ${Math.round(ageMs / 60_000)} minutes ago`;
  return [ageMs > 2 * everyMs ? 'fail' : 'ok', detail, lookInLog];
}
