/**
 * The hosts of a server: the one that was used last, and others that can take over from it.
 */
import { resolveHost, type Address, type Host } from './address.ts';
import { Connection, type OpenOptions } from './connection.ts';
import { ConnectionError, WrongServer } from '../errors.ts';

export class Hosts {
  readonly #address: Address;
  #hosts: readonly Host[];
  #lastAddress: string | undefined;

  constructor(address: Address) {
    this.#address = address;
    this.#hosts = address.hosts;
  }

  /** Connects to the host that was used last, or else to the first one that can be verified and accepts writes. */
  async open(options: OpenOptions): Promise<Connection> {
    let failure: unknown;
    const failed = (error: unknown) => {
      if (failure === undefined || failure instanceof WrongServer) failure = error;
    };
    for (const host of this.#hosts) {
      for (const address of (await this.#resolve(host).catch(failed)) ?? []) {
        if (options.stop.aborted) throw new ConnectionError(options.stop.reason);
        try {
          const connection = await Connection.open(this.#address, host, address, options);
          // Stay with this host while it serves: another one can be a former primary.
          this.#hosts = [host, ...this.#hosts.filter((other) => other !== host)];
          this.#lastAddress = address;
          return connection;
        } catch (error) {
          failed(error);
        }
      }
    }
    throw failure;
  }

  /** The address that was used last comes first. */
  async #resolve(host: Host): Promise<string[]> {
    const isLast = (address: string) => address === this.#lastAddress;
    const addresses = await resolveHost(host);
    return [...addresses.filter(isLast), ...addresses.filter((address) => !isLast(address))];
  }
}
