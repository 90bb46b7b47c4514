import { changeStatements } from '../../src/postgres/change-statements.ts';
import type { Statement } from '../../src/postgres/connection.ts';
import { groupSql } from '../../src/postgres/group.ts';
import { endOfStepSql, findSql, listSql, stepSql } from '../../src/postgres/plants.ts';
import { tokenSql } from '../../src/postgres/tokens.ts';
import { refreshSql } from '../../src/postgres/freshness.ts';

const { findToken, findRole, listAll: _all, listStore: _store, ...others } = tokenSql;

/** All that requests send. */
export const ofRequests: readonly Statement[] = [
  ...Object.values(listSql),
  ...Object.values(endOfStepSql),
  ...Object.values(stepSql),
  findSql,
  refreshSql,
  ...Object.values(groupSql),
  ...Object.values(changeStatements).map(({ statement }) => statement),
  findToken,
  findRole,
];

/** What commands send about one token, user or store. */
export const ofCommands: readonly Statement[] = Object.values(others);
