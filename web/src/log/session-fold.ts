/**
 * A session, folded from its events: facts in their order, signals in between.
 *
 * A fact that was seen already is passed over, and a gap is refused: so whoever reads again from the last number it
 * has, as often as it likes, ends with the same session. Turns are replaced and not changed, once for each batch: what
 * is drawn can tell by identity what to draw anew.
 */

import { about } from "./folds/session-facts";
import { acted } from "./folds/tool-facts";
import type { SylphEvent } from "./events";
import { said } from "./folds/turn-facts";
import type { Question, Session, Waiting } from "./session";
import { Sheet } from "./session-builder";
import { signal } from "./folds/signals";
import { thought } from "./folds/model-facts";

/** Each kind of fact; the first that knows one takes it. */
const KINDS = [about, said, thought, acted];

/** Events are missing before this one: read again from `after`. */
export class Gap extends Error {
  constructor(readonly after: number) {
    super(`events after ${after} are missing`);
  }
}

export class Fold {
  readonly #sheet: Sheet;

  /** `from` is the first fact that will come: later than 1 where the beginning is not loaded. */
  constructor(id: string, from = 1) {
    this.#sheet = new Sheet(id, from);
  }

  get session(): Session {
    return this.#sheet.session;
  }

  /** Takes a batch; what it changed is changed when this returns. */
  take(events: readonly SylphEvent[]): void {
    this.#sheet.touched.clear();
    for (const event of events) this.#one(event);
  }

  /** What waits although the facts of it are not loaded: told by the server. */
  waits(queue: readonly Waiting[], questions: readonly Question[]): void {
    const session = this.session;
    for (const one of queue) {
      if (this.#sheet.inputs.has(one.id)) continue;
      this.#sheet.inputs.set(one.id, { kind: "said", seq: 0, ts: 0, id: one.id, text: one.text, images: [], actor: "user", steered: false, lost: false });
    }
    const known = new Map(session.queue.map((one) => [one.id, one]));
    session.queue = queue.map((one) => known.get(one.id) ?? one);
    const missing = questions.filter((one) => !session.questions.has(one.asked.id));
    if (missing.length) session.questions = new Map([...missing.map((one) => [one.asked.id, one] as const), ...session.questions]);
  }

  /** Takes over what only signals have told, from a fold of the same session. */
  heard(other: Session): void {
    if (this.#sheet.hushed <= other.seq) this.session.live = other.live;
    if (this.#sheet.anew > other.seq) return;
    for (const call of other.calls.values()) {
      if (call.live) this.#sheet.call(call.id, (mine) => (mine.live = mine.output ? "" : call.live));
    }
  }

  #one(event: SylphEvent): void {
    const session = this.session;
    if (event.seq === 0) {
      signal(this.#sheet, event);
      return;
    }
    if (event.seq <= session.seq) return;
    if (event.seq > session.seq + 1) throw new Gap(session.seq);
    session.seq = event.seq;
    this.#sheet.before = session.updated;
    session.updated = event.ts;
    this.#fact(event);
  }

  #fact(event: SylphEvent): void {
    // A type this version does not know is no error: the log may be newer than the page.
    KINDS.some((kind) => kind(this.#sheet, event));
  }
}

/** Facts folded at once. */
export function folded(id: string, events: readonly SylphEvent[]): Session {
  const fold = new Fold(id, events.find((event) => event.seq)?.seq ?? 1);
  fold.take(events);
  return fold.session;
}
