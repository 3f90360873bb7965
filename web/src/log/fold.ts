/**
 * A session, folded from its events: facts in their order, signals in between.
 *
 * A fact that was seen already is passed over, and a gap is refused: so whoever reads again from the last number it
 * has, as often as it likes, ends with the same session. Turns are replaced and not changed, once for each batch: what
 * is drawn can tell by identity what to draw anew.
 */

import type { Asked, SylphEvent } from "./events";
import { type Call, type CallState, fresh, type Note, type Question, type Said, type Session, silence, type Turn, type Waiting } from "./session";

/** Events are missing before this one: read again from `after`. */
export class Gap extends Error {
  constructor(readonly after: number) {
    super(`events after ${after} are missing`);
  }
}

export class Fold {
  readonly session: Session;
  #touched = new Set<string>();
  #inputs = new Map<string, Said>();
  #undos = new Map<string, { calls: string[]; redo: string }>();
  /** Taken back while a turn runs: if it is stopped right after, nobody meant to lose them. */
  #dropped: Said[] = [];
  /** The facts that made an end of what signals had told: of the answer, and of what calls print. */
  #hushed = 0;
  #anew = 0;
  /** When the fact before this one was, and the last one before the copy was made. */
  #before = 0;
  #left = 0;
  /** When a model was last asked. */
  #asked = 0;

  /** `from` is the first fact that will come: later than 1 where the beginning is not loaded. */
  constructor(id: string, from = 1) {
    this.session = fresh(id);
    this.session.seq = from - 1;
  }

  /** Takes a batch; what it changed is changed when this returns. */
  take(events: readonly SylphEvent[]): void {
    this.#touched.clear();
    for (const event of events) this.#one(event);
  }

  /** What waits although the facts of it are not loaded: told by the server. */
  waits(queue: readonly Waiting[], questions: readonly Question[]): void {
    const session = this.session;
    for (const one of queue) {
      if (this.#inputs.has(one.id)) continue;
      this.#inputs.set(one.id, { kind: "said", seq: 0, ts: 0, id: one.id, text: one.text, images: [], actor: "user", steered: false, lost: false });
    }
    const known = new Map(session.queue.map((one) => [one.id, one]));
    session.queue = queue.map((one) => known.get(one.id) ?? one);
    const missing = questions.filter((one) => !session.questions.has(one.asked.id));
    if (missing.length) session.questions = new Map([...missing.map((one) => [one.asked.id, one] as const), ...session.questions]);
  }

  /** Takes over what only signals have told, from a fold of the same session. */
  heard(other: Session): void {
    if (this.#hushed <= other.seq) this.session.live = other.live;
    if (this.#anew > other.seq) return;
    for (const call of other.calls.values()) {
      if (call.live) this.#call(call.id, (mine) => (mine.live = mine.output ? "" : call.live));
    }
  }

  #one(event: SylphEvent): void {
    const session = this.session;
    if (event.seq === 0) {
      this.#signal(event);
      return;
    }
    if (event.seq <= session.seq) return;
    if (event.seq > session.seq + 1) throw new Gap(session.seq);
    session.seq = event.seq;
    this.#before = session.updated;
    session.updated = event.ts;
    this.#fact(event);
  }

  #signal(event: SylphEvent): void {
    const live = this.session.live;
    switch (event.type) {
      case "delta.text":
        live.text += event.data.text;
        break;
      case "delta.reasoning":
        live.reasoning += event.data.text;
        break;
      case "delta.args": {
        const { index, name, text } = event.data;
        const known = (live.args[index] ??= { name: "", text: "" });
        known.name = name || known.name;
        known.text += text;
        break;
      }
      case "tool.output":
        this.#call(event.data.call, (call) => (call.live = tail(call.live + event.data.text)));
        break;
      case "progress":
        live.progress = event.data.text;
        break;
      case "live": {
        // All at once, for who came late or missed some.
        const { text = "", reasoning = "", calls = [], outputs = {}, progress = "" } = event.data;
        this.session.live = { text, reasoning, args: calls.map((call) => ({ ...call })), progress };
        for (const [id, printed] of Object.entries(outputs)) this.#call(id, (call) => (call.live = call.output ? "" : printed));
        break;
      }
      case "session.failed":
        this.#note(event, "bad", event.data.trouble.message);
        break;
    }
  }

  #fact(event: SylphEvent): void {
    if (this.#about(event) || this.#said(event) || this.#thought(event) || this.#acted(event)) return;
    // A type this version does not know is no error: the log may be newer than the page.
  }

  /** What the session itself is. */
  #about(event: SylphEvent): boolean {
    const session = this.session;
    switch (event.type) {
      case "session.created":
        session.workspace = event.data.workspace;
        session.model = event.data.model;
        session.mode = event.data.mode;
        session.title = event.data.title ?? "";
        session.sandbox = event.data.sandbox ?? true;
        session.label = event.data.label ?? "";
        return true;
      case "session.renamed":
        session.title = event.data.title;
        return true;
      case "session.forked":
        session.parent = event.data.parent;
        Object.assign(session, { queue: [], archived: false, pinned: false, deleted: false, cost: 0, unpriced: false });
        session.usage = { input: 0, output: 0, cached: 0, reasoning: 0, written: 0 };
        this.#inputs.clear();
        this.#dropped = [];
        this.#left = this.#before;
        this.#close();
        this.#note(event, "plain", event.data.parent);
        return true;
      case "session.archived":
        session.archived = event.data.archived;
        return true;
      case "session.pinned":
        session.pinned = event.data.pinned;
        return true;
      case "session.seen":
        session.seen = event.data.upto;
        return true;
      case "session.deleted":
      case "session.restored":
        session.deleted = event.type === "session.deleted";
        return true;
      case "session.mode":
        session.mode = event.data.mode;
        this.#note(event, "plain", event.data.mode);
        return true;
      case "session.sandbox":
        session.sandbox = event.data.on;
        this.#note(event, event.data.on ? "plain" : "warn", event.data.on ? "on" : "off");
        return true;
      case "session.model":
        session.model = event.data.model;
        this.#note(event, "plain", event.data.model);
        return true;
      case "session.role":
        session.roles = { ...session.roles, [event.data.role]: event.data.model };
        return true;
      case "session.budget":
        session.budget = event.data.money ?? null;
        return true;
      case "state.changed": {
        session.state = event.data.to;
        const last = session.turns.at(-1);
        if (last?.last && last.id === event.turn) this.#touch(last).last = event.seq;
        return true;
      }
      case "plan.updated":
        session.plan = event.data.steps;
        return true;
    }
    return false;
  }

  /** What people said, and the turns that came of it. */
  #said(event: SylphEvent): boolean {
    const session = this.session;
    switch (event.type) {
      case "input.received": {
        const { id, text, delivery, images } = event.data;
        const said: Said = {
          kind: "said",
          seq: event.seq,
          ts: event.ts,
          id,
          text,
          images: images ?? [],
          actor: event.actor,
          steered: false,
          lost: false,
        };
        this.#inputs.set(id, said);
        session.title ||= titleOf(text);
        session.queue = [...session.queue, { id, text, follow: delivery === "follow", images: said.images }];
        return true;
      }
      case "input.delivered":
        this.#deliver(event, event.data.id, true);
        return true;
      case "input.cancelled": {
        const input = this.#inputs.get(event.data.id);
        if (input && event.turn) this.#dropped.push({ ...input, seq: input.seq || event.seq, ts: input.ts || event.ts, lost: true });
        this.#inputs.delete(event.data.id);
        session.queue = session.queue.filter((one) => one.id !== event.data.id);
        return true;
      }
      case "turn.started": {
        const turn = this.#begin(event.turn, event);
        turn.retryOf = event.data.retry_of ?? "";
        this.#dropped = [];
        this.#hush();
        this.#deliver(event, event.data.input, false);
        return true;
      }
      case "turn.resumed":
        this.#hush();
        this.#anew = event.seq;
        for (const call of session.calls.values()) if (call.live) this.#call(call.id, (one) => (one.live = ""));
        // Whoever waited for these answers is gone; the turn asks anew.
        this.#close();
        this.#note(event, "warn", "");
        return true;
      case "turn.ended": {
        const turn = this.#turn(event);
        // A copy that was made in the middle of it adds the end later; the work was over before.
        turn.ended = event.data.trouble?.kind === "forked" ? Math.max(turn.began, this.#left) : event.ts;
        turn.last = event.seq;
        turn.outcome = event.data.outcome;
        turn.trouble = event.data.trouble ?? null;
        turn.rounds = event.data.rounds ?? 0;
        if (turn.outcome === "cancelled") turn.items.push(...this.#dropped);
        this.#dropped = [];
        this.#hush();
        this.#close();
        this.#stopped(turn);
        return true;
      }
      case "history.rewound":
        for (const turn of session.turns) {
          if (turn.id && turn.first >= event.data.to && turn.id !== event.turn && !turn.rewound) {
            this.#touch(turn).rewound = true;
          }
        }
        return true;
    }
    return false;
  }

  /** What models did. */
  #thought(event: SylphEvent): boolean {
    const session = this.session;
    switch (event.type) {
      case "model.requested":
        this.#dropped = [];
        this.#asked = event.ts;
        if (event.data.role === undefined || event.data.role === "main") {
          this.#hush();
          session.window = event.data.window ?? session.window;
        }
        return true;
      case "model.responded": {
        const data = event.data;
        const usage = data.usage ?? {};
        for (const key of Object.keys(session.usage) as (keyof typeof session.usage)[]) {
          session.usage[key] += usage[key] ?? 0;
        }
        const turn = this.#turn(event);
        turn.cost += data.cost ?? 0;
        session.cost += data.cost ?? 0;
        session.unpriced ||= data.cost === undefined || data.cost === null;
        if (data.role !== undefined && data.role !== "main") return true;
        session.context = (usage.input ?? 0) + (usage.output ?? 0) || session.context;
        this.#hush();
        if (data.text || data.reasoning) {
          turn.items.push({
            kind: "told",
            seq: event.seq,
            ts: event.ts,
            model: data.model,
            text: data.text,
            reasoning: data.reasoning ?? "",
            usage,
            cost: data.cost ?? null,
            ms: data.ms ?? 0,
            firstMs: data.first_ms ?? 0,
            cut: false,
          });
        }
        return true;
      }
      case "model.failed":
        this.#failed(event);
        return true;
      case "model.fell_back":
        this.#note(event, event.data.to ? "warn" : "bad", event.data.to || event.data.trouble.message);
        return true;
      case "compaction.made":
        session.context = event.data.tokens_after;
        this.#note(event, "plain", event.data.summary);
        return true;
      case "compaction.failed":
        this.#note(event, "warn", event.data.trouble.message);
        return true;
      case "budget.warned":
      case "budget.stopped":
      case "budget.exceeded":
        this.#note(event, event.type === "budget.warned" ? "warn" : "bad", "");
        return true;
    }
    return false;
  }

  /** What tools did, and what people were asked about it. */
  #acted(event: SylphEvent): boolean {
    const session = this.session;
    switch (event.type) {
      case "tool.called": {
        const call = called(event.data.call, event.data.name, event.data.arguments, event.seq, event.ts);
        session.calls.set(call.id, call);
        session.live.args = [];
        this.#turn(event).items.push({ kind: "called", seq: event.seq, ts: event.ts, call });
        return true;
      }
      case "tool.decided": {
        const { decision, reason, by, effect, risk, reach, arguments: made } = event.data;
        this.#call(event.data.call, (call) => {
          Object.assign(call, { decision, reason, by, effect, risk, reach: reach ?? {} });
          call.arguments = made || call.arguments;
          call.state = decision === "deny" ? "refused" : call.state;
        });
        return true;
      }
      case "tool.started":
        this.#call(event.data.call, (call) => {
          call.state = "running";
          call.began = event.ts;
          call.effect = event.data.effect;
        });
        return true;
      case "tool.finished": {
        const data = event.data;
        this.#call(data.call, (call) => {
          const stopped = data.trouble?.kind === "cancelled";
          call.state = call.state === "refused" ? "refused" : data.ok ? "done" : stopped ? "stopped" : "failed";
          call.output = data.output;
          call.live = "";
          call.exit = data.exit ?? null;
          call.trouble = data.trouble ?? null;
          call.ms = data.ms ?? 0;
          call.ended = event.ts;
          call.whole = !!data.whole;
          call.wholeBytes = data.whole_bytes ?? 0;
          call.dry = data.dry ?? false;
          call.images = data.images ?? [];
        });
        return true;
      }
      case "files.changed":
        this.#call(event.data.call, (call) => {
          call.changes = event.data.changes ?? [];
          call.gaps = event.data.gaps ?? [];
        });
        return true;
      case "undo.started":
        this.#undos.set(event.data.id, { calls: event.data.calls ?? [], redo: event.data.redo ?? "" });
        return true;
      case "files.restored":
        session.redo = this.#restored(event.data.undo) ? "" : event.data.undo;
        this.#note(event, "plain", "");
        return true;
      case "asked": {
        const question = { seq: event.seq, ts: event.ts, asked: event.data, answer: "", reason: "", by: "", via: "", open: true, turn: event.turn };
        session.questions = new Map(session.questions).set(event.data.id, question);
        for (const id of callsOf(event.data)) {
          this.#call(id, (call) => (call.state = call.state === "called" ? "waiting" : call.state === "running" ? "asking" : call.state));
        }
        return true;
      }
      case "answered": {
        const known = session.questions.get(event.data.id);
        if (known) {
          const { answer, reason, by, via } = event.data;
          const settled = { ...known, answer, reason: reason ?? "", by: by ?? "", via: via ?? "", open: false };
          session.questions = new Map(session.questions).set(event.data.id, settled);
          this.#answered(settled);
        }
        return true;
      }
    }
    return false;
  }

  #deliver(event: SylphEvent, id: string, steered: boolean): void {
    const input = this.#inputs.get(id);
    this.#inputs.delete(id);
    this.session.queue = this.session.queue.filter((one) => one.id !== id);
    if (input) this.#turn(event).items.push({ ...input, seq: input.seq || event.seq, ts: input.ts || event.ts, steered });
  }

  #failed(event: SylphEvent & { type: "model.failed" }): void {
    const { role, cost, partial, trouble, model, retry_ms: again } = event.data;
    const over = again === undefined || again === null;
    this.session.cost += cost ?? 0;
    if (role === undefined || role === "main") this.#hush();
    // Where there is another try, it says all of it anew.
    if (over && partial?.trim() && (role === undefined || role === "main")) {
      this.#turn(event).items.push({
        kind: "told", seq: event.seq, ts: event.ts, model, text: partial, reasoning: "", usage: {}, cost: null, ms: 0, firstMs: 0, cut: true,
      });
    }
    // That somebody stopped it is no failure; the end of the turn tells it.
    if (trouble.kind !== "cancelled") this.#note(event, over ? "bad" : "warn", trouble.message);
  }

  /** The calls of a question wait no longer, although others may still. */
  #answered(question: Question): void {
    const open = [...this.session.questions.values()].filter((one) => one.open).flatMap((one) => callsOf(one.asked));
    for (const id of callsOf(question.asked)) {
      if (open.includes(id)) continue;
      this.#call(id, (call) => {
        if (call.state === "asking") call.state = "running";
        else if (call.state === "waiting") call.state = YES.has(question.answer) ? "called" : "refused";
      });
    }
  }

  /** Calls that the end of their turn was the end of. */
  #stopped(turn: Turn): void {
    const cancelled = turn.outcome === "cancelled";
    for (const item of turn.items) {
      if (item.kind !== "called") continue;
      const { id, state, exit, ended } = item.call;
      // A command that was stopped has ended by a signal, in the last round.
      const killed = cancelled && state === "failed" && exit !== null && exit > SIGNALLED && ended >= this.#asked;
      if (!killed && !UNDER_WAY.has(state)) continue;
      this.#call(id, (call) => {
        call.state = "stopped";
        if (killed) call.ms = Math.max(call.ms, ended - call.began);
      });
    }
  }

  #hush(): void {
    this.session.live = silence();
    this.#hushed = this.session.seq;
  }

  /** What was asked and not answered is not open any more. */
  #close(): void {
    const open = [...this.session.questions.values()].filter((question) => question.open);
    if (!open.length) return;
    const questions = new Map(this.session.questions);
    for (const question of open) questions.set(question.asked.id, { ...question, open: false });
    this.session.questions = questions;
  }

  /** Returns whether it took another undo back. */
  #restored(id: string): boolean {
    const undo = this.#undos.get(id);
    const back = undo?.redo ? this.#undos.get(undo.redo) : undefined;
    for (const call of (back ?? undo)?.calls ?? []) this.#call(call, (one) => (one.undone = !back));
    return !!undo?.redo;
  }

  #begin(id: string, event: SylphEvent): Turn {
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
    this.#touched.add(turn.key);
    return turn;
  }

  /** The turn an event belongs to, ready to be changed. */
  #turn(event: SylphEvent): Turn {
    const last = this.session.turns.at(-1);
    if (last && last.id === event.turn) return this.#touch(last);
    const known = event.turn ? this.session.turns.find((turn) => turn.id === event.turn) : undefined;
    return known ? this.#touch(known) : this.#begin(event.turn, event);
  }

  #touch(turn: Turn): Turn {
    if (this.#touched.has(turn.key)) return turn;
    const copy = { ...turn, items: [...turn.items] };
    this.session.turns = this.session.turns.map((one) => (one === turn ? copy : one));
    this.#touched.add(copy.key);
    return copy;
  }

  #call(id: string, change: (call: Call) => void): void {
    const known = this.session.calls.get(id);
    if (!known) return;
    const call = { ...known };
    change(call);
    this.session.calls.set(id, call);
    for (let at = this.session.turns.length - 1; at >= 0; at--) {
      const turn = this.session.turns[at];
      const place = turn?.items.findLastIndex((item) => item.kind === "called" && item.call.id === id) ?? -1;
      const item = turn?.items[place];
      if (!turn || item?.kind !== "called") continue;
      this.#touch(turn).items[place] = { ...item, call };
      return;
    }
  }

  #note(event: SylphEvent, tone: Note["tone"], text: string): void {
    this.#turn(event).items.push({ kind: "note", seq: event.seq, ts: event.ts, tone, about: event.type, text, fact: event });
  }
}

/** Facts folded at once. */
export function folded(id: string, events: readonly SylphEvent[]): Session {
  const fold = new Fold(id, events.find((event) => event.seq)?.seq ?? 1);
  fold.take(events);
  return fold.session;
}

function called(id: string, name: string, given: string, seq: number, ts: number): Call {
  return {
    id,
    name,
    arguments: given,
    state: "called",
    seq,
    began: ts,
    ended: 0,
    decision: "",
    reason: "",
    by: "",
    effect: "",
    risk: "",
    reach: {},
    output: "",
    live: "",
    exit: null,
    trouble: null,
    ms: 0,
    whole: false,
    wholeBytes: 0,
    dry: false,
    images: [],
    changes: [],
    gaps: [],
    undone: false,
  };
}

/** The calls that a question is about. */
function callsOf(asked: Asked): string[] {
  return asked.calls?.length ? asked.calls : asked.call ? [asked.call] : [];
}

const UNDER_WAY: ReadonlySet<string> = new Set<CallState>(["called", "waiting", "asking", "running"]);
/** Exit codes above it are those of commands that a signal has ended. */
const SIGNALLED = 128;
const YES: ReadonlySet<string> = new Set(["yes", "session", "always", "edit"]);
const SHOWN = 200_000;
const TITLE = 60;

/** What a session is called until it has a title: its first words. */
export function titleOf(text: string): string {
  const line = [...text.trim().replace(/\s+/g, " ")];
  return line.length <= TITLE ? line.join("") : `${line.slice(0, TITLE - 1).join("").trimEnd()}…`;
}

/** The end of what a call prints: a page is no place for gigabytes. */
function tail(text: string): string {
  return text.length > SHOWN ? text.slice(-SHOWN / 2) : text;
}
