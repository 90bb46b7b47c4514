import { changeStatements, createWithIdsSql } from '../../src/postgres/change-statements.ts';
import type { Statement } from '../../src/postgres/connection.ts';
import { groupSql } from '../../src/postgres/group.ts';
import { limitSql } from '../../src/postgres/numbered-creates.ts';
import {
  findOwnerSql,
  findSql,
  listSql,
  mergeSql,
  inReachSql,
  scanStepEndSql,
  scanStepSql,
} from '../../src/postgres/plant-statements.ts';
import { shareSql } from '../../src/postgres/shares.ts';
import { grantSql } from '../../src/postgres/grants.ts';
import { nameSql } from '../../src/postgres/names.ts';
import { tokenSql } from '../../src/postgres/tokens.ts';
import { userSql } from '../../src/postgres/users.ts';
import { refreshSql } from '../../src/postgres/freshness.ts';

const { listAll: _all, setRole, listStore, ...ofTokens } = tokenSql;
const { listStores: _stores, ...ofUsers } = userSql;

/** What is read from the tables of a shard, on a cluster. */
export const ofShards: readonly Statement[] = [
  ...Object.values(listSql),
  inReachSql,
  mergeSql,
  scanStepEndSql,
  scanStepSql,
  findSql,
  findOwnerSql,
  refreshSql,
  grantSql.findByToken,
  grantSql.findByUser,
  nameSql.findUser,
  nameSql.describeUser,
  nameSql.findStoreName,
  tokenSql.listUser,
  tokenSql.listStore,
  userSql.describeStore,
  userSql.listUsers,
  userSql.countTokens,
  userSql.countPlants,
  shareSql.ofUser,
  shareSql.list,
];

/** All that requests send. */
const sentByRequests: readonly Statement[] = [
  ...ofShards,
  ...Object.values(groupSql),
  ...Object.values(limitSql),
  ...Object.values(changeStatements).map(({ statement }) => statement),
  createWithIdsSql,
  ...Object.values(grantSql),
  ...Object.values(nameSql),
  ...Object.values(ofTokens),
  ...Object.values(shareSql),
];
export const ofRequests: readonly Statement[] = [...new Set(sentByRequests)];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = [setRole, listStore, ...Object.values(ofUsers)];
