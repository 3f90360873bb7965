/** An open session: its newest facts at once, older ones when somebody looks for them, and what happens from now on. */

import type { Asked, SylphEvent } from "../log/events";
import { newSession, type QueuedMessage, type Session, type SessionQuestion } from "../log/session";
import { EventGapError, SessionFold } from "../log/session-fold";
import { apiPath, getJson, Problem } from "../net/api";
import type { EventStream, SessionFollower } from "../net/event-stream";

/** How many facts are loaded at a time, backwards. */
export const FACTS_PER_PAGE = 600;

/** So many at once, where a place far back is wanted; and so many before that place. */
const MAX_FACTS_PER_REQUEST = 1000;
const FACTS_BEFORE_TARGET = 60;

interface FactPage {
  items: SylphEvent[];
  next: string | null;
}

/** What the server says a session is at fact `seq`: the beginning of a fold that has not seen the beginning. */
export interface SessionSnapshot {
  seq: number;
  title: string;
  workspace: string;
  model: string;
  mode: Session["mode"];
  sandbox: boolean;
  state: string;
  pinned: boolean;
  archived: boolean;
  deleted: boolean;
  parent: string;
  plan: Session["plan"];
  roles: Session["roles"];
  usage: Session["usage"];
  cost: number | null;
  budget: number | null;
  context: { tokens: number; window: number };
  queue: { id: string; text: string; delivery: string }[];
  questions: ListedQuestion[];
  unread: boolean;
  interrupted: boolean;
}

/** A question as the server lists it: with its calls whole instead of their names. */
type ListedQuestion = Omit<Asked, "call" | "calls"> & { calls: { id: string }[] };

export class OpenSession implements SessionFollower {
  session = $state.raw<Session>(newSession(""));
  loading = $state(true);
  missing = $state(false);
  /** Whether there are facts before those that are loaded. */
  hasOlder = $state(false);
  /** Whether what came before is on its way. */
  loadingOlder = $state(false);
  /** A turn was left open by a process that is gone; not known to have been taken up again. */
  interrupted = $state(false);
  /** Why it could not be opened. */
  problem = $state.raw<Problem | null>(null);
  #facts = $state.raw<SylphEvent[]>([]);
  #fold: SessionFold;
  #header: SessionSnapshot | null = null;

  constructor(
    readonly id: string,
    private readonly stream: Pick<EventStream, "follow" | "unfollow">,
    private readonly page = FACTS_PER_PAGE,
  ) {
    this.#fold = new SessionFold(id);
    this.session = newSession(id);
  }

  async open(): Promise<void> {
    this.loading = true;
    this.problem = null;
    try {
      const header = await getJson<SessionSnapshot>(apiPath`sessions/${this.id}`);
      const facts = await this.#fetchBefore(header.seq + 1);
      this.#refold(header, facts);
      this.interrupted = header.interrupted;
      this.stream.follow(this.id, this);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.missing = error.status === 404;
      this.problem = this.missing ? null : error;
    } finally {
      this.loading = false;
    }
  }

  close(): void {
    this.stream.unfollow(this.id);
  }

  async loadOlder(): Promise<void> {
    if (!this.loadingOlder) await this.#loadFrom(this.#firstSeq - this.page);
  }

  /** Loads all that is missing from a fact on, and a little before it. */
  async loadBackTo(seq: number): Promise<void> {
    // Somebody else may be loading what is just before.
    while (this.loadingOlder) await new Promise((done) => setTimeout(done, 50));
    await this.#loadFrom(seq - FACTS_BEFORE_TARGET);
  }

  async #loadFrom(wanted: number): Promise<void> {
    const [first, from] = [this.#firstSeq, Math.max(1, wanted)];
    if (!this.hasOlder || first <= from) return;
    this.loadingOlder = true;
    try {
      let found: SylphEvent[] = [];
      for (let next = first; next > from; next = found[0]?.seq ?? 0) {
        found = [...(await this.#fetchBefore(next, Math.min(MAX_FACTS_PER_REQUEST, next - from))), ...found];
      }
      const known = this.#facts;
      if (found.length && known[0]?.seq === first && this.#header) this.#refold(this.#header, [...found, ...known]);
    } finally {
      this.loadingOlder = false;
    }
  }

  /** The facts that are loaded, for those who draw them otherwise. */
  get facts(): readonly SylphEvent[] {
    return this.#facts;
  }

  get #firstSeq(): number {
    return this.#facts[0]?.seq ?? 1;
  }

  lastSeq(): number {
    return this.#fold.session.seq;
  }

  applyEvents(events: SylphEvent[]): void {
    try {
      this.#fold.applyEvents(events);
    } catch (error) {
      if (!(error instanceof EventGapError)) throw error;
      // What is missing is read again from there.
      this.stream.follow(this.id, this);
    }
    const seen = this.#facts.at(-1)?.seq ?? 0;
    const news = events.filter((event) => event.seq > seen && event.seq <= this.lastSeq());
    if (news.length) {
      this.#facts = [...this.#facts, ...news];
      this.interrupted = false;
    }
    this.#publish();
  }

  reset(): void {
    void this.open();
  }

  markGone(): void {
    this.missing = true;
  }

  async #fetchBefore(seq: number, count = this.page): Promise<SylphEvent[]> {
    // Facts are numbered without gaps: those before one are those after another.
    const after = Math.max(0, seq - 1 - count);
    const limit = seq - 1 - after;
    return limit ? (await getJson<FactPage>(apiPath`sessions/${this.id}/facts?after=${after}&limit=${limit}`)).items : [];
  }

  #refold(header: SessionSnapshot, facts: SylphEvent[]): void {
    const first = facts[0]?.seq ?? header.seq + 1;
    const fold = new SessionFold(this.id, first);
    const told = facts.filter((fact) => fact.seq <= header.seq);
    fold.applyEvents(told);
    if (first > 1) {
      applyHeader(fold.session, header);
      fold.addPending(header.queue.map(toQueuedMessage), header.questions.map(toQuestion));
    }
    fold.applyEvents(facts.slice(told.length));
    if (this.#header) fold.adoptLive(this.#fold.session);
    this.#fold = fold;
    this.#facts = facts;
    this.#header = header;
    this.hasOlder = first > 1;
    this.#publish();
  }

  #publish(): void {
    this.session = { ...this.#fold.session };
  }
}

function toQueuedMessage(one: SessionSnapshot["queue"][number]): QueuedMessage {
  return { id: one.id, text: one.text, follow: one.delivery === "follow", images: [] };
}

function toQuestion({ calls, ...rest }: ListedQuestion): SessionQuestion {
  const ids = calls.map((call) => call.id);
  const asked: Asked = { ...rest, call: ids[0] ?? "", calls: ids };
  return { seq: 0, ts: 0, asked, answer: "", reason: "", by: "", via: "", open: true, turn: "" };
}

/** What cannot be known without the beginning is taken from what the server knows of it. */
export function applyHeader(session: Session, header: SessionSnapshot): void {
  const { title, workspace, model, mode, sandbox, state, parent, plan, roles, usage, budget } = header;
  Object.assign(session, { title, workspace, model, mode, sandbox, state, parent, plan, roles, budget });
  session.usage = { ...usage };
  session.cost = header.cost ?? 0;
  session.unpriced = header.cost === null;
  session.context = header.context.tokens;
  session.window = header.context.window;
  session.pinned = header.pinned;
  session.archived = header.archived;
  session.deleted = header.deleted;
}
