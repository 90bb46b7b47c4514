import { changeSql } from '../../src/postgres/change-statements.ts';
import type { Statement } from '../../src/postgres/connection.ts';
import {
  findOwnerSql,
  findSql,
  listSql,
  mergeSql,
  ownedSql,
  scanStepEndSql,
  scanStepSql,
} from '../../src/postgres/plants.ts';
import { ownTokenSql } from '../../src/postgres/own-tokens.ts';
import { shareSql } from '../../src/postgres/shares.ts';
import { grantSql } from '../../src/postgres/grants.ts';
import { nameSql } from '../../src/postgres/names.ts';
import { tokenSql } from '../../src/postgres/tokens.ts';
import { unroutedSql } from '../../src/postgres/unrouted-tokens.ts';
import { userSql } from '../../src/postgres/users.ts';
import { refreshSql } from '../../src/postgres/freshness.ts';

const { listAll: _all, listUser, findById, revoke, addToken, ...ofTokens } = tokenSql;
const { listStores: _stores, ...ofUsers } = userSql;

/** What is read from the tables of a shard, on a cluster. */
export const ofShards: readonly Statement[] = [
  ...Object.values(listSql),
  ownedSql,
  mergeSql,
  ...Object.values(scanStepEndSql),
  ...Object.values(scanStepSql),
  findSql,
  findOwnerSql,
  refreshSql,
  grantSql.findByToken,
  grantSql.findByUser,
  nameSql.findUser,
  nameSql.describeUser,
  nameSql.findStoreName,
  shareSql.ofUser,
  shareSql.list,
];

/** All that requests send. */
const sentByRequests: readonly Statement[] = [
  ...ofShards,
  ...Object.values(changeSql),
  ...Object.values(grantSql),
  ...Object.values(nameSql),
  listUser,
  findById,
  revoke,
  addToken,
  ...Object.values(unroutedSql),
  ...Object.values(ownTokenSql),
  ...Object.values(shareSql),
];
export const ofRequests: readonly Statement[] = [...new Set(sentByRequests)];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = [
  ...Object.values(ofTokens),
  ...Object.values(ofUsers),
];
