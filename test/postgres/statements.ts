import { changeSql } from '../../src/postgres/writer/statements.ts';
import type { Statement } from '../../src/sql/statement.ts';
import { findSql, listSql } from '../../src/postgres/tables/plants.ts';
import { shareSql } from '../../src/sql/shares.ts';
import { grantSql } from '../../src/sql/grants.ts';
import { logSql } from '../../src/sql/log.ts';
import { retentionSql } from '../../src/sql/retention.ts';
import { addToLogSql } from '../../src/postgres/tables/log.ts';
import { nameSql } from '../../src/postgres/tables/names.ts';
import { tokenSql } from '../../src/sql/tokens.ts';
import { userSql } from '../../src/sql/users.ts';
import { webhookSql } from '../../src/sql/webhooks.ts';
import { refreshSql } from '../../src/postgres/tables/grants.ts';

const { listStore, ...ofTokens } = tokenSql;
const { listStores: _stores, ...ofUsers } = userSql;

/** What is read from the tables of a shard, on a cluster. */
export const ofShards: readonly Statement[] = [
  ...Object.values(listSql).flatMap((of) => Object.values(of)),
  findSql,
  refreshSql,
  grantSql.findByToken,
  grantSql.findByUser,
  userSql.find,
  nameSql.findStoreName,
  tokenSql.listUser,
  tokenSql.listStore,
  userSql.describeStore,
  userSql.list,
  userSql.findInvitations,
  shareSql.ofUser,
  shareSql.list,
  logSql.findDeletions,
  logSql.scanDeletions,
  logSql.findLast,
  logSql.history,
  logSql.list,
  logSql.position,
  logSql.follow,
  retentionSql.oldest,
  userSql.namesOf,
  webhookSql.list,
  webhookSql.find,
];

/** All that requests send. */
const sentByRequests: readonly Statement[] = [
  ...ofShards,
  ...Object.values(changeSql),
  ...Object.values(grantSql),
  ...Object.values(nameSql),
  ...Object.values(ofTokens),
  ...Object.values(shareSql),
  ...Object.values(logSql),
  ...Object.values(webhookSql),
  retentionSql.oldest,
  retentionSql.remove,
  addToLogSql,
];
export const ofRequests: readonly Statement[] = [...new Set(sentByRequests)];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = [listStore, ...Object.values(ofUsers)];
