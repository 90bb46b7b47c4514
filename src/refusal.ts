/** What was asked for cannot be done; the message tells a person why and what to do instead. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}
