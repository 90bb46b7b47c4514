/** Maximum number of rows that a command reads at a time. */
export const pageRows = 500;

/** All rows of a list. `read` returns up to `pageRows` rows: those after `last`, or the first ones. */
export async function allPages<Row>(
  read: (last: Row | undefined) => Promise<Row[]>,
): Promise<Row[]> {
  const all: Row[] = [];
  for (;;) {
    const page = await read(all.at(-1));
    all.push(...page);
    if (page.length < pageRows) return all;
  }
}
