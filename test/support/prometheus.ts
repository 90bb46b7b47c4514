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

/** An alert fires and clears within this time. */
const maxMs = 60_000;

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

  /** The labels of each alert that fires, with its summary. */
  async firing(): Promise<Labels[]> {
    const { alerts } = await this.#get('alerts');
    return (alerts as { state: string; labels: Labels; annotations: Labels }[])
      .filter(({ state }) => state === 'firing')
      .map(({ labels, annotations }) => ({ ...labels, ...annotations }));
  }

  /** Waits until the alert fires for this instance or method. Its summary must be complete. */
  async fires(name: string, of: string): Promise<void> {
    await until(
      `${name} fires for ${of}`,
      async () => (await this.#find(name, of)) !== undefined,
      maxMs,
    );
    const { summary = '' } = (await this.#find(name, of)) ?? {};
    if (!summary.includes(of) || summary.includes('<')) throw new Error(`${name}: ${summary}`);
  }

  async clears(name: string, of: string): Promise<void> {
    await until(
      `${name} clears for ${of}`,
      async () => (await this.#find(name, of)) === undefined,
      maxMs,
    );
  }

  async #find(name: string, of: string): Promise<Labels | undefined> {
    const all = await this.firing();
    return all.find(
      ({ alertname, instance, http_request_method: method }) =>
        alertname === name && [instance, method].includes(of),
    );
  }

  async #get(path: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#address}/api/v1/${path}`);
    const { data } = (await response.json()) as { data: Record<string, unknown> }; // of the API of Prometheus
    return data;
  }
}

function deployed(file: string): string {
  return readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
}
