/**
 * A session, folded from its events: facts in their order, signals in between.
 *
 * A fact that was seen already is passed over, and a gap is refused: so whoever reads again from the last number it
 * has, as often as it likes, ends with the same session. Turns are replaced and not changed, once for each batch: what
 * is drawn can tell by identity what to draw anew.
 */

import type { SylphEvent } from "./events";
import { foldModelFact } from "./folds/model-facts";
import { foldSessionFact } from "./folds/session-facts";
import { applySignal } from "./folds/signals";
import { foldToolFact } from "./folds/tool-facts";
import { foldTurnFact } from "./folds/turn-facts";
import type { QueuedMessage, Session, SessionQuestion } from "./session";
import { SessionBuilder } from "./session-builder";

/** Each kind of fact; the first that knows one takes it. */
const FACT_FOLDS = [foldSessionFact, foldTurnFact, foldModelFact, foldToolFact];

/** Events are missing before this one: read again from `after`. */
export class EventGapError extends Error {
  constructor(readonly after: number) {
    super(`events after ${after} are missing`);
  }
}

export class SessionFold {
  readonly #builder: SessionBuilder;

  /** `from` is the first fact that will come: later than 1 where the beginning is not loaded. */
  constructor(id: string, from = 1) {
    this.#builder = new SessionBuilder(id, from);
  }

  get session(): Session {
    return this.#builder.session;
  }

  /** Takes a batch; what it changed is changed when this returns. */
  applyEvents(events: readonly SylphEvent[]): void {
    this.#builder.copiedTurns.clear();
    for (const event of events) this.#applyEvent(event);
  }

  /** What waits although the facts of it are not loaded: told by the server. */
  addPending(queue: readonly QueuedMessage[], questions: readonly SessionQuestion[]): void {
    const session = this.session;
    for (const one of queue) {
      if (this.#builder.inputs.has(one.id)) continue;
      this.#builder.inputs.set(one.id, { kind: "user", seq: 0, ts: 0, id: one.id, text: one.text, images: [], actor: "user", steered: false, lost: false });
    }
    const known = new Map(session.queue.map((one) => [one.id, one]));
    session.queue = queue.map((one) => known.get(one.id) ?? one);
    const missing = questions.filter((one) => !session.questions.has(one.asked.id));
    if (missing.length) session.questions = new Map([...missing.map((one) => [one.asked.id, one] as const), ...session.questions]);
  }

  /** Takes over what only signals have told, from a fold of the same session. */
  adoptLive(other: Session): void {
    if (this.#builder.liveClearedAt <= other.seq) this.session.live = other.live;
    if (this.#builder.outputClearedAt > other.seq) return;
    for (const call of other.calls.values()) {
      if (call.live) this.#builder.changeCall(call.id, (mine) => (mine.live = mine.output ? "" : call.live));
    }
  }

  #applyEvent(event: SylphEvent): void {
    const session = this.session;
    if (event.seq === 0) {
      applySignal(this.#builder, event);
      return;
    }
    if (event.seq <= session.seq) return;
    if (event.seq > session.seq + 1) throw new EventGapError(session.seq);
    session.seq = event.seq;
    this.#builder.previousTs = session.updated;
    session.updated = event.ts;
    this.#applyFact(event);
  }

  #applyFact(event: SylphEvent): void {
    // A type this version does not know is no error: the log may be newer than the page.
    FACT_FOLDS.some((kind) => kind(this.#builder, event));
  }
}

/** Facts folded at once. */
export function foldSession(id: string, events: readonly SylphEvent[]): Session {
  const fold = new SessionFold(id, events.find((event) => event.seq)?.seq ?? 1);
  fold.applyEvents(events);
  return fold.session;
}
