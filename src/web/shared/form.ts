/**
 * A form of index.html: it is sent once at a time, and each fault appears beside its field. The element with the id
 * NAME contains NAME-form, and can have elements of the classes `failure` and `done` for messages. A FIELD has the id
 * NAME-FIELD, and its fault NAME-FIELD-fault. An attribute has the text for what the rules of a field refuse.
 */
import { PlantStoreError } from '../../client/client.ts';
import { textFields } from '../../client/types.ts';
import { act } from './banner.ts';
import { byId, fill, setText, type Text } from './dom.ts';
import { outcomeOf } from './outcome.ts';
import { toast } from './toast.ts';

/** The inputs for the texts of a plant. */
export function textInputs(form: string) {
  return textFields.map((field) => ({ field, input: byId(`${form}-${field}`, HTMLInputElement) }));
}

/** A key for a request that can be repeated. */
export function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-'); // randomUUID() needs HTTPS
}

/** What a form does. It can return what the user is told. */
type Task = () => Promise<Text | void>;

/** Runs the task of a button, unless it is running. Then the user need not wait for the service. */
export async function whileBusy(button: HTMLElement, task: () => Promise<void>): Promise<void> {
  if (button.ariaBusy === 'true') return act();
  button.ariaBusy = 'true'; // unlike `disabled`, it keeps the focus
  try {
    await task();
  } finally {
    button.ariaBusy = null;
  }
}

export class Form {
  readonly #name: string;
  readonly #place: HTMLElement;
  readonly #form: HTMLFormElement;

  constructor(name: string, send: Task) {
    this.#name = name;
    this.#place = byId(name, HTMLElement);
    this.#form = byId(`${name}-form`, HTMLFormElement);
    const button = this.#form.querySelector<HTMLElement>('[type=submit]') ?? this.#form;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void whileBusy(button, () => this.run(async () => (this.#isValid() ? send() : undefined)));
    });
  }

  /** Runs a task of the form, or of something beside it, and shows how it ended. */
  async run(task: Task): Promise<void> {
    this.clear();
    const done = (await outcomeOf(task())) ?? '';
    if (done instanceof PlantStoreError) this.#fail(done);
    else if (done !== '' && !this.#place.checkVisibility()) toast(done);
    else this.#tell('done', done);
  }

  /** Removes the messages about what was sent before. */
  clear(): void {
    for (const field of this.#form.querySelectorAll('[aria-invalid]')) field.ariaInvalid = null;
    for (const fault of this.#form.querySelectorAll('.fault')) fault.textContent = '';
    for (const kind of ['done', 'failure']) this.#tell(kind, '');
  }

  /** Shows a fault beside its field, and moves to the first one. Returns false if there is no such field. */
  fault(name: string, text: Text): boolean {
    const id = `${this.#name}-${name}`;
    const place = document.getElementById(id);
    if (place === null) return false;
    setText(`${id}-fault`, text);
    const field = place.querySelector('input') ?? place; // the first one of a group
    field.ariaInvalid = 'true';
    const fold = field.closest('details');
    if (fold) fold.open = true;
    this.#form.querySelector<HTMLElement>('[aria-invalid]')?.focus();
    return true;
  }

  #isValid(): boolean {
    const fields = [...this.#form.querySelectorAll<HTMLInputElement>('input:invalid')];
    for (const { id, dataset } of fields) {
      this.fault(id.slice(this.#name.length + 1), dataset['fault'] ?? '');
    }
    return fields.length === 0;
  }

  #fail({ kind, title, detail, errors }: PlantStoreError): void {
    if (!this.#place.checkVisibility()) return void toast(`${title}. ${detail}`);
    const faults = kind === 'id-taken' ? [{ pointer: '/id', detail }] : errors;
    const others = faults.filter(
      (each) => !this.fault(each.pointer?.slice(1) ?? each.parameter ?? '', each.detail),
    );
    if (faults.length > 0 && others.length === 0) return;
    this.#tell('failure', detail);
  }

  #tell(kind: string, text: Text): void {
    const message = this.#place.querySelector(`.${kind}`);
    if (message) fill(message, text);
  }
}
