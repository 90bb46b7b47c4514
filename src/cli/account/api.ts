/**
 * Sends any request with the token of the user, for scripts and for operations that no other command has.
 */
import { Readable } from 'node:stream';
import { Argument, type Command } from '@commander-js/extra-typings';
import { networkFailure, PlantStoreError } from '../../client/problem.ts';
import { UsageError } from '../../refusal.ts';
import { failWith, io, print, printAll, printError } from '../output.ts';
import { connectedCommand, explained, readText, readToken } from '../service.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export function addApiCommand(plantStore: Command): void {
  connectedCommand(plantStore, 'api', [
    'plant-store api GET "/plants?limit=10&fields=id,name"',
    `plant-store api POST /plants --data '{"name": "Monstera"}'`,
    'plant-store api PATCH /plants/40 --data - < changes.json',
  ])
    .description('send a request, and print the body of the response')
    .addArgument(new Argument('<method>', 'method of the request').choices(methods))
    .argument('<path>', 'path and query of the request, such as /plants?limit=10')
    .option('--data <json>', 'body; @FILE to read it from a file, or - for standard input')
    .action(async (method, path, { url, token: source, data }) => {
      if (data === '-' && source === '-') {
        throw new UsageError('Only one of --data and --token can be read from standard input.');
      }
      if (data !== undefined && method === 'GET') throw new UsageError('GET takes no body.');
      const address = addressOf(url, path);
      const token = await readToken(source);
      const headers: Record<string, string> = { authorization: `Bearer ${token}` };
      const init: RequestInit = { method, headers, redirect: 'manual' };
      if (data !== undefined) {
        headers['content-type'] = 'application/json';
        init.body = await readText('the body', data);
      }
      await explained(url, () => send(address, init));
    });
}

/** Throws a UsageError if the token would be sent elsewhere: by "@host" after the address, or by a path of dots. */
function addressOf(url: string, path: string): URL {
  const address = path.startsWith('/') ? URL.parse(url + path) : null;
  if (address?.href.startsWith(`${url}/`)) return address;
  throw new UsageError('Use the path of an operation, such as /plants.');
}

async function send(address: URL, init: RequestInit): Promise<void> {
  try {
    const { ok, status, body } = await fetch(address, init);
    const text = body?.pipeThrough(new TextDecoderStream()) ?? Readable.from([]);
    if (ok) {
      await printAll(text);
      if (io.stdout.isTTY) print(''); // the shell shows its prompt on a line of its own
      return;
    }
    failWith(1);
    printError(
      (await Array.fromAsync(text)).join('') || `The status of the response is ${status}.`,
    );
  } catch (cause) {
    throw new PlantStoreError(networkFailure(address, cause), init.method !== 'GET');
  }
}
