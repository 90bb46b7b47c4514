/** What a check of `plant-store doctor` finds. The fix is what to do if the status is warn or fail. */
export type Finding = readonly [
  status: 'ok' | 'warn' | 'fail' | 'skipped',
  detail: string,
  fix?: string | null,
];

/** If it throws, it fails. If later ones throw an error with the same message, they are skipped. */
export type Check = readonly [name: string, about: string, run: () => Finding | Promise<Finding>];
