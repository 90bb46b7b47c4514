/**
 * The verdict of the oracle on a request: the allowed responses, and the stage that finds each.
 */

export interface Outcome {
  status: number;
  /** Last part of the type of a problem. */
  kind?: string;
  challenge?: string;
  allow?: string;
  /** The places of faults in `errors`: `pointer /name`, `parameter limit`, `*` for one of any name. */
  places?: readonly string[];
  /** JSON of a success. */
  text?: string;
  location?: string;
  /** The state of a plant that the entity tag identifies (world.ts). */
  state?: string;
  /** The part of the JSON that `text` is about, if the rest differs between services. Throws for another form. */
  view?: (answer: { json: unknown; location: string | undefined }) => unknown;
  /** Parameters of the next page; null if there must be no Link. */
  next?: Record<string, string> | null;
  /** What an answer with this status has changed. */
  effect?: () => void;
  /** Whether the connection ends with it. */
  closes: 'must' | 'may' | 'no';
}

/** When a fault is looked for. */
export const stage = {
  bytes: 0,
  head: 1,
  target: 2,
  token: 3,
  scope: 4,
  body: 5,
  input: 6,
  store: 7,
} as const;
/** For faults that can be reported or not: they hide nothing. */
export const optional = Infinity;

export const invalid = { status: 400, kind: 'invalid-request' } as const;
/** Takes an answer that is allowed from one stage on, and hides what is found after the other. */
export type Add = (
  from: number,
  to: number,
  outcome: Omit<Outcome, 'closes'>,
  closes?: Outcome['closes'],
) => void;

/** In the parameters of the next page, a cursor that only the service knows. */
export const anyCursor = '*';
