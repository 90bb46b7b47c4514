/**
 * The requests of a dialog, one after another, so that no list is older than a change that it should show.
 */
import { PlantStoreError, type PlantStore } from '../../client/client.ts';
import type { Connection } from '../session/connection.ts';
import { toast } from '../shared/toast.ts';

export class Requests {
  readonly #connection: Connection;
  readonly #dialog: HTMLDialogElement;
  #last: Promise<unknown> = Promise.resolve();
  #end = new AbortController();

  constructor(connection: Connection, dialog: HTMLDialogElement) {
    this.#connection = connection;
    this.#dialog = dialog;
  }

  /** Aborts when another store opens. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Drops the requests of the user before. */
  reset(): void {
    this.#end.abort();
    this.#end = new AbortController();
    this.#last = Promise.resolve();
  }

  /** Runs the task after the ones before. It throws what `run` of the connection throws. */
  async run<T>(
    task: (store: PlantStore) => Promise<T>,
    { once = false }: { once?: boolean } = {},
  ): Promise<T> {
    const { signal } = this;
    const turn = this.#last.then(() => this.#connection.run(task, { signal, once }));
    this.#last = turn.catch(() => {}); // whoever began it handles the error
    return turn;
  }

  /** Shows what went wrong at its place, or at the bottom of the page if the dialog is closed. Throws other errors. */
  fail(error: unknown, place: (text: string, error: PlantStoreError) => void): void {
    if (!(error instanceof PlantStoreError)) throw error;
    if (this.#dialog.open) place(error.detail, error);
    else toast(`${error.title}. ${error.detail}`);
  }
}
