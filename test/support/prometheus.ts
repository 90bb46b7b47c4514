/**
 * A Prometheus with the files of deploy/, whose times are shorter here: minutes are seconds.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from './postgres.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

type Labels = Record<string, string>;

export class Prometheus {
  readonly #address: string;

  private constructor(address: string) {
    this.#address = address;
  }

  /** Scrapes these ports of this machine. `adapt` changes the rules further. */
  static async start(
    t: Pick<TestContext, 'after'>,
    ports: readonly number[],
    adapt = (rules: string) => rules,
  ): Promise<Prometheus> {
    const folder = tempFolder(t);
    const targets = ports.map((port) => `127.0.0.1:${port}`);
    const configuration = deployed('prometheus.yml')
      .replace(/^alerting:[^]*?\n\n/m, '')
      .replace('scrape_interval: 15s', 'scrape_interval: 2s') // a worker has a second to answer
      .replace('evaluation_interval: 15s', 'evaluation_interval: 500ms')
      .replace(/targets: .*/, `targets: [${targets.join()}]`);
    const rules = deployed('alerts.yml')
      .replaceAll(/for: \d+m/g, 'for: 1s')
      .replaceAll(/\[\d+m\]/g, '[10s]');
    writeFileSync(join(folder, 'prometheus.yml'), configuration);
    writeFileSync(join(folder, 'alerts.yml'), adapt(rules));
    const port = await freePort();
    const child = spawn(
      'prometheus',
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
    const ended = once(child, 'exit');
    t.after(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    const address = `http://127.0.0.1:${port}`;
    await until('Prometheus is ready', () => {
      if (child.exitCode !== null) throw new Error(`Prometheus exited with ${child.exitCode}`);
      return fetch(`${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    return new Prometheus(address);
  }

  /** The labels and the value of each series that the expression has now. */
  async query(expression: string): Promise<[Labels, number][]> {
    const { result } = await this.#get(`query?query=${encodeURIComponent(expression)}`);
    return (result as { metric: Labels; value: [number, string] }[]).map(({ metric, value }) => [
      metric,
      Number(value[1]),
    ]);
  }

  /** The labels of each alert of this name that fires, with its summary. */
  async firing(name: string): Promise<Labels[]> {
    const { alerts } = await this.#get('alerts');
    return (alerts as { state: string; labels: Labels; annotations: Labels }[])
      .filter(({ state, labels }) => state === 'firing' && labels['alertname'] === name)
      .map(({ labels, annotations }) => ({ ...labels, ...annotations }));
  }

  async #get(path: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#address}/api/v1/${path}`);
    const { data } = (await response.json()) as { data: Record<string, unknown> }; // of the API of Prometheus
    return data;
  }

  /** Waits until the alert fires, for this instance or method. Its summary must be complete. */
  async fires(name: string, of: string): Promise<void> {
    let found: Labels | undefined;
    await until(
      `${name} fires for ${of}`,
      async () => {
        found = (await this.firing(name)).find((labels) => Object.values(labels).includes(of));
        return found !== undefined;
      },
      60_000,
    );
    const summary = found?.['summary'] ?? '';
    if (!summary.includes(of) || summary.includes('<')) throw new Error(summary);
  }

  async clears(name: string, of: string): Promise<void> {
    const isClear = async () =>
      !(await this.firing(name)).some((labels) => Object.values(labels).includes(of));
    await until(`${name} clears for ${of}`, isClear, 60_000);
  }
}

function deployed(file: string): string {
  return readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
}
