import { binSql } from '../../src/postgres/tables/bin.ts';
import { changeSql } from '../../src/postgres/writer/statements.ts';
import type { Statement } from '../../src/postgres/pool/connection.ts';
import { findOwnerSql, findSql, listSql } from '../../src/postgres/tables/plant-statements.ts';
import { shareSql } from '../../src/postgres/tables/shares.ts';
import { grantSql } from '../../src/postgres/tables/grants.ts';
import { logSql } from '../../src/postgres/tables/log.ts';
import { nameSql } from '../../src/postgres/tables/names.ts';
import { tokenSql } from '../../src/postgres/tables/tokens.ts';
import { userSql } from '../../src/postgres/tables/users.ts';
import { refreshSql } from '../../src/postgres/tables/grants-version.ts';

const { listAll: _all, listStore, ...ofTokens } = tokenSql;
const { listStores: _stores, ...ofUsers } = userSql;

/** What is read from the tables of a shard, on a cluster. */
export const ofShards: readonly Statement[] = [
  ...Object.values(listSql).flatMap((of) => Object.values(of)),
  findSql,
  findOwnerSql,
  refreshSql,
  grantSql.findByToken,
  grantSql.findByUser,
  nameSql.findUser,
  nameSql.findStoreName,
  tokenSql.listUser,
  tokenSql.listStore,
  userSql.describeStore,
  userSql.listUsers,
  userSql.countPlants,
  shareSql.ofUser,
  shareSql.list,
  logSql.findDeleted,
  logSql.history,
  userSql.namesOf,
  logSql.list,
  logSql.listPlant,
  ...Object.values(binSql),
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
];
export const ofRequests: readonly Statement[] = [...new Set(sentByRequests)];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = [listStore, ...Object.values(ofUsers)];
