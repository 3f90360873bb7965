/** A session while facts are being put into it: turns are replaced and not changed, once for each batch. */

import type { SylphEvent } from "./events";
import { emptyLiveAnswer, newSession, type Session, type SessionNote, type ToolCall, type Turn, type UserMessage } from "./session";

export class SessionBuilder {
  readonly session: Session;
  /** Turns that this batch has copied already. */
  readonly copiedTurns = new Set<string>();
  /** What was said and has not been heard yet. */
  readonly inputs = new Map<string, UserMessage>();
  readonly undos = new Map<string, { calls: string[]; redo: string }>();
  /** Taken back while a turn runs: if it is stopped right after, nobody meant to lose them. */
  withdrawnInputs: UserMessage[] = [];
  /** The facts that made an end of what signals had told: of the answer, and of what calls print. */
  liveClearedAt = 0;
  outputClearedAt = 0;
  /** When the fact before this one was, and the last one before the copy was made. */
  previousTs = 0;
  lastTsBeforeFork = 0;
  /** When a model was last asked. */
  modelAskedAt = 0;

  constructor(id: string, from: number) {
    this.session = newSession(id);
    this.session.seq = from - 1;
  }

  deliverInput(event: SylphEvent, id: string, steered: boolean): void {
    const input = this.inputs.get(id);
    this.inputs.delete(id);
    this.session.queue = this.session.queue.filter((one) => one.id !== id);
    if (input) this.turnOf(event).items.push({ ...input, seq: input.seq || event.seq, ts: input.ts || event.ts, steered });
  }

  clearLive(): void {
    this.session.live = emptyLiveAnswer();
    this.liveClearedAt = this.session.seq;
  }

  /** What was asked and not answered is not open any more. */
  closeQuestions(): void {
    const open = [...this.session.questions.values()].filter((question) => question.open);
    if (!open.length) return;
    const questions = new Map(this.session.questions);
    for (const question of open) questions.set(question.asked.id, { ...question, open: false });
    this.session.questions = questions;
  }

  /** Returns whether it took another undo back. */
  markRestored(id: string): boolean {
    const undo = this.undos.get(id);
    const back = undo?.redo ? this.undos.get(undo.redo) : undefined;
    for (const call of (back ?? undo)?.calls ?? []) this.changeCall(call, (one) => (one.undone = !back));
    return !!undo?.redo;
  }

  beginTurn(id: string, event: SylphEvent): Turn {
    const turn: Turn = {
      key: id || `at${event.seq}`,
      id,
      first: event.seq,
      began: event.ts,
      ended: 0,
      last: 0,
      outcome: "",
      trouble: null,
      retryOf: "",
      rewound: false,
      rounds: 0,
      cost: 0,
      items: [],
    };
    this.session.turns = [...this.session.turns, turn];
    this.copiedTurns.add(turn.key);
    return turn;
  }

  /** The turn an event belongs to, ready to be changed. */
  turnOf(event: SylphEvent): Turn {
    const last = this.session.turns.at(-1);
    if (last && last.id === event.turn) return this.copyTurn(last);
    const known = event.turn ? this.session.turns.find((turn) => turn.id === event.turn) : undefined;
    return known ? this.copyTurn(known) : this.beginTurn(event.turn, event);
  }

  copyTurn(turn: Turn): Turn {
    if (this.copiedTurns.has(turn.key)) return turn;
    const copy = { ...turn, items: [...turn.items] };
    this.session.turns = this.session.turns.map((one) => (one === turn ? copy : one));
    this.copiedTurns.add(copy.key);
    return copy;
  }

  changeCall(id: string, change: (call: ToolCall) => void): void {
    const known = this.session.calls.get(id);
    if (!known) return;
    const call = { ...known };
    change(call);
    this.session.calls.set(id, call);
    for (let at = this.session.turns.length - 1; at >= 0; at--) {
      const turn = this.session.turns[at];
      const place = turn?.items.findLastIndex((item) => item.kind === "tool" && item.call.id === id) ?? -1;
      const item = turn?.items[place];
      if (!turn || item?.kind !== "tool") continue;
      this.copyTurn(turn).items[place] = { ...item, call };
      return;
    }
  }

  addNote(event: SylphEvent, tone: SessionNote["tone"], text: string): void {
    this.turnOf(event).items.push({ kind: "note", seq: event.seq, ts: event.ts, tone, about: event.type, text, fact: event });
  }
}
