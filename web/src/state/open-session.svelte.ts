/** An open session: its newest facts at once, older ones when somebody looks for them, and what happens from now on. */

import type { Asked, SylphEvent } from "../log/events";
import { Fold, Gap } from "../log/session-fold";
import { fresh, type Question, type Session, type Waiting } from "../log/session";
import { at, get, Problem } from "../net/api";
import type { Follower, Stream } from "../net/event-stream";

/** How many facts are loaded at a time, backwards. */
export const PAGE = 600;

/** So many at once, where a place far back is wanted; and so many before that place. */
const MOST = 1000;
const AROUND = 60;

interface Facts {
  items: SylphEvent[];
  next: string | null;
}

/** What the server says a session is at fact `seq`: the beginning of a fold that has not seen the beginning. */
export interface Header {
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
  questions: Asking[];
  unread: boolean;
  interrupted: boolean;
}

/** A question as the server lists it: with its calls whole instead of their names. */
type Asking = Omit<Asked, "call" | "calls"> & { calls: { id: string }[] };

export class Chat implements Follower {
  session = $state.raw<Session>(fresh(""));
  loading = $state(true);
  missing = $state(false);
  /** Whether there are facts before those that are loaded. */
  older = $state(false);
  /** Whether what came before is on its way. */
  fetching = $state(false);
  /** A turn was left open by a process that is gone; not known to have been taken up again. */
  interrupted = $state(false);
  /** Why it could not be opened. */
  trouble = $state.raw<Problem | null>(null);
  #facts = $state.raw<SylphEvent[]>([]);
  #fold: Fold;
  #header: Header | null = null;

  constructor(
    readonly id: string,
    private readonly stream: Pick<Stream, "follow" | "leave">,
    private readonly page = PAGE,
  ) {
    this.#fold = new Fold(id);
    this.session = fresh(id);
  }

  async open(): Promise<void> {
    this.loading = true;
    this.trouble = null;
    try {
      const header = await get<Header>(at`sessions/${this.id}`);
      const facts = await this.#before(header.seq + 1);
      this.#begin(header, facts);
      this.interrupted = header.interrupted;
      this.stream.follow(this.id, this);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.missing = error.status === 404;
      this.trouble = this.missing ? null : error;
    } finally {
      this.loading = false;
    }
  }

  close(): void {
    this.stream.leave(this.id);
  }

  async loadOlder(): Promise<void> {
    if (!this.fetching) await this.#loadFrom(this.#first - this.page);
  }

  /** Loads all that is missing from a fact on, and a little before it. */
  async loadTo(seq: number): Promise<void> {
    // Somebody else may be loading what is just before.
    while (this.fetching) await new Promise((done) => setTimeout(done, 50));
    await this.#loadFrom(seq - AROUND);
  }

  async #loadFrom(wanted: number): Promise<void> {
    const [first, from] = [this.#first, Math.max(1, wanted)];
    if (!this.older || first <= from) return;
    this.fetching = true;
    try {
      let found: SylphEvent[] = [];
      for (let next = first; next > from; next = found[0]?.seq ?? 0) {
        found = [...(await this.#before(next, Math.min(MOST, next - from))), ...found];
      }
      const known = this.#facts;
      if (found.length && known[0]?.seq === first && this.#header) this.#begin(this.#header, [...found, ...known]);
    } finally {
      this.fetching = false;
    }
  }

  /** The facts that are loaded, for those who draw them otherwise. */
  get facts(): readonly SylphEvent[] {
    return this.#facts;
  }

  get #first(): number {
    return this.#facts[0]?.seq ?? 1;
  }

  seq(): number {
    return this.#fold.session.seq;
  }

  take(events: SylphEvent[]): void {
    try {
      this.#fold.take(events);
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      // What is missing is read again from there.
      this.stream.follow(this.id, this);
    }
    const seen = this.#facts.at(-1)?.seq ?? 0;
    const news = events.filter((event) => event.seq > seen && event.seq <= this.seq());
    if (news.length) {
      this.#facts = [...this.#facts, ...news];
      this.interrupted = false;
    }
    this.#show();
  }

  reset(): void {
    void this.open();
  }

  gone(): void {
    this.missing = true;
  }

  async #before(seq: number, count = this.page): Promise<SylphEvent[]> {
    // Facts are numbered without gaps: those before one are those after another.
    const after = Math.max(0, seq - 1 - count);
    const limit = seq - 1 - after;
    return limit ? (await get<Facts>(at`sessions/${this.id}/facts?after=${after}&limit=${limit}`)).items : [];
  }

  #begin(header: Header, facts: SylphEvent[]): void {
    const first = facts[0]?.seq ?? header.seq + 1;
    const fold = new Fold(this.id, first);
    const told = facts.filter((fact) => fact.seq <= header.seq);
    fold.take(told);
    if (first > 1) {
      seed(fold.session, header);
      fold.waits(header.queue.map(waiting), header.questions.map(asking));
    }
    fold.take(facts.slice(told.length));
    if (this.#header) fold.heard(this.#fold.session);
    this.#fold = fold;
    this.#facts = facts;
    this.#header = header;
    this.older = first > 1;
    this.#show();
  }

  #show(): void {
    this.session = { ...this.#fold.session };
  }
}

function waiting(one: Header["queue"][number]): Waiting {
  return { id: one.id, text: one.text, follow: one.delivery === "follow", images: [] };
}

function asking({ calls, ...rest }: Asking): Question {
  const ids = calls.map((call) => call.id);
  const asked: Asked = { ...rest, call: ids[0] ?? "", calls: ids };
  return { seq: 0, ts: 0, asked, answer: "", reason: "", by: "", via: "", open: true, turn: "" };
}

/** What cannot be known without the beginning is taken from what the server knows of it. */
export function seed(session: Session, header: Header): void {
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
