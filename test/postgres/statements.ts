import { changeStatements } from '../../src/postgres/change-statements.ts';
import type { Statement } from '../../src/postgres/connection.ts';
import { groupSql } from '../../src/postgres/group.ts';
import { scanStepEndSql, findSql, listSql, scanStepSql } from '../../src/postgres/plants.ts';
import { tokenSql } from '../../src/postgres/tokens.ts';
import { refreshSql } from '../../src/postgres/freshness.ts';

const { findToken, describeUser, listAll: _all, listStore: _store, ...others } = tokenSql;

/** All that requests send. */
export const ofRequests: readonly Statement[] = [
  ...Object.values(listSql),
  ...Object.values(scanStepEndSql),
  ...Object.values(scanStepSql),
  findSql,
  refreshSql,
  ...Object.values(groupSql),
  ...Object.values(changeStatements).map(({ statement }) => statement),
  findToken,
  describeUser,
];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = Object.values(others);
