/** What was asked for cannot be done; the message tells a person why and what to do instead. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
}

/** What was asked for is not well formed: there is nothing yet that could fail. */
export class Misuse extends Refusal {
  override readonly name = 'Misuse';
}

/** The disk has not kept what it was given: a person has to look at it. */
export class DiskFailure extends Refusal {
  override readonly name = 'DiskFailure';
}

/** A database that `copy` has not finished must not be taken for a whole one. */
export function unfinishedCopy(): Refusal {
  return new Refusal(
    'The database holds a part of a copy. Finish it with "plant-store copy --resume", or use another.',
  );
}
