/**
 * What managers do with the users of their store, over HTTP.
 */
import { randomUUID } from 'node:crypto';
import { Option, type Command } from '@commander-js/extra-typings';
import { memberScopes, roles } from '../../access/access.ts';
import type { PlantStore } from '../../client/client.ts';
import { isUser } from '../../client/is-user.ts';
import { isLoopback } from '../../client/request.ts';
import { maxInvitationUses } from '../../access/own-tokens.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import { integer, parseDurationMs, parseId, parseName, parseScopeList } from '../options.ts';
import { confirm, listed, printError, type Result } from '../output.ts';
import { onService, serviceCommand } from '../service.ts';
import { tableOf } from '../terminal.ts';

export async function listUsersByService(service: PlantStore): Promise<Result> {
  const users = await Array.fromAsync(service.listUsers());
  return listed(['user', 'role', 'plants', 'lastUsedAt'], users);
}

export function addUserServiceCommands(user: Command): void {
  serviceCommand(user, 'access', ['plant-store user access bob 42'])
    .description('show whether a user can read and write a plant, and why')
    .argument('<user>', 'name of the user', parseName)
    .argument('<id>', 'id of the plant', parseId)
    .action(
      onService(async (store, name, id) => {
        const value = await store.explainAccess(name, id);
        const rows = (['read', 'write'] as const).map((access) => {
          const { allowed, rule } = value[access];
          return { access, allowed: allowed ? 'yes' : 'no', rule };
        });
        return { value, text: tableOf(['access', 'allowed', 'rule'], rows) };
      }),
    );

  serviceCommand(user, 'invite', [
    'plant-store user invite bob',
    'plant-store user invite class --uses 30 --expires 1d',
  ])
    .description('create an invitation, and print its link')
    .argument('<user>', 'user whom the invitation is for; created if needed', parseName)
    .addOption(new Option('--role <role>', 'new role of the user').choices(roles))
    .addOption(
      new Option(
        '--scope <list>',
        'scopes of its tokens, separated by commas; by default yours, without those of managers for a member',
      ).argParser(parseScopeList),
    )
    .option(
      '--uses <number>',
      'how often it can be used, for a class',
      integer(1, maxInvitationUses),
      1,
    )
    .option('--expires <duration>', 'how long it can be used, at most 7d', parseDurationMs)
    .action(
      onService(async (store, name, { url, role, scope, uses, expires }) => {
        const { scopes: own } = await store.token();
        const usual = own.filter((one) => role === 'manager' || memberScopes.includes(one));
        const expiresAt = formatTimestamp(expires && Date.now() + expires);
        const invitation = { uses, ...(expiresAt !== undefined && { expiresAt }) };
        const terms = { invitation, scopes: scope ?? usual };
        const key = { idempotencyKey: randomUUID() };
        if (await isUser(store, name)) await confirmLink(name);
        const created = await store.createTokenFor(name, terms, key);
        if (role !== undefined) await store.setRole(name, role);
        const link = `${url}/#token=${created.token}`;
        const place = isLoopback(new URL(url)) ? 'It opens only on this computer.' : '';
        printError(
          `Until ${created.expiresAt}, whoever uses the link is ${name}. ${place}`.trimEnd(),
        );
        return { value: { ...created, link }, text: link };
      }),
    );
}

async function confirmLink(name: string): Promise<void> {
  const question = `User ${name} is in the store already. Whoever uses the link gets their plants and shares. Create a link?`;
  await confirm(question, 'Nothing was created.'); // a script continues
}
