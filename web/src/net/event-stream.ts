/**
 * The one stream of the app: every event of the sessions that are open, and a note of each change to any other.
 *
 * It keeps nothing but what it is asked to follow. Whoever follows says where it stands each time the stream is opened
 * anew, so a cut, a restart of the server or a night asleep ends where an unbroken stream would have.
 */

import type { SylphEvent } from "../log/events";
import { get, Problem } from "./api";
import { type Ear, Events, type Place, Socket, type Wire } from "./transports";

export interface Question {
  id: string;
  kind: string;
  question: string;
  detail?: string;
  choices?: string[];
  free?: boolean;
  call?: string;
}

/** What a session is now, as the server notes it. */
export interface Changed {
  type: "session.changed";
  id: string;
  title: string;
  workspace: string;
  state: string;
  mode: string;
  model: string;
  seq: number;
  turns: number;
  created: number;
  updated: number;
  parent?: string;
  deleted?: boolean;
  archived?: boolean;
  pinned?: boolean;
  questions?: Question[];
}

export type Note =
  | { type: "stream.opened"; client: string; beat_ms: number; version: string; started: number }
  | { type: "stream.reset"; session: string }
  | { type: "stream.gone"; session: string }
  | { type: "session.removed"; id: string }
  | { type: "config.changed" }
  | Changed;

export interface Follower {
  /** The last fact it has. */
  seq(): number;
  take(events: SylphEvent[]): void;
  /** What it has is not in the log: it begins anew. */
  reset(): void;
  gone(): void;
}

export type Link = "connecting" | "open" | "waiting";

const SHORTEST = 250;
const LONGEST = 15_000;
/** So often in a row a WebSocket fails where requests do not, until it is taken for blocked: by a proxy, say. */
const BLOCKED = 2;

export class Stream {
  #followers = new Map<string, Follower>();
  #wire: Wire = new Socket(() => this.#places());
  #blocked = 0;
  #stop: AbortController | null = null;
  #tries = 0;
  #wake: (() => void) | null = null;
  #waiting = new Map<string, SylphEvent[]>();
  #due = false;

  constructor(
    private readonly told: (note: Note) => void,
    private readonly linked: (link: Link) => void,
    private readonly soon: (work: () => void) => void = (work) => {
      // A page in the background draws no frames, and still has to follow.
      if (document.hidden) setTimeout(work, 100);
      else requestAnimationFrame(work);
    },
  ) {}

  start(): void {
    if (this.#stop) return;
    this.#stop = new AbortController();
    void this.#run(this.#stop.signal);
  }

  end(): void {
    this.#stop?.abort();
    this.#stop = null;
    this.#wake?.();
  }

  /** Tries at once, where it would wait: the network is back, or somebody looks at the page. */
  hurry(): void {
    this.#tries = 0;
    this.#wake?.();
  }

  follow(session: string, follower: Follower): void {
    this.#followers.set(session, follower);
    this.#wire.follow({ id: session, after: follower.seq() });
  }

  leave(session: string): void {
    this.#followers.delete(session);
    this.#waiting.delete(session);
    this.#wire.leave(session);
  }

  #places(): Place[] {
    return [...this.#followers].map(([id, follower]) => ({ id, after: follower.seq() }));
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.linked("connecting");
      try {
        await this.#read(signal);
        this.#tries = 0;
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return;
        if (!(await this.#known())) return;
      }
      if (signal.aborted) return;
      this.linked("waiting");
      const pause = Math.min(LONGEST, SHORTEST * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
      await new Promise<void>((done) => {
        const timer = setTimeout(done, pause);
        this.#wake = () => {
          clearTimeout(timer);
          done();
        };
      });
    }
  }

  /** Whether the server still knows us, as far as it can be asked: a WebSocket does not tell why it is refused. */
  async #known(): Promise<boolean> {
    if (!(this.#wire instanceof Socket)) return true;
    try {
      await get("login");
      if (++this.#blocked >= BLOCKED) this.#wire = new Events(() => this.#places());
    } catch (error) {
      return !(error instanceof Problem && error.status === 401);
    }
    return true;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const cut = new AbortController();
    const abort = (): void => cut.abort();
    signal.addEventListener("abort", abort);
    let beat = 60_000;
    let watch = setTimeout(abort, beat);
    const ear: Ear = {
      alive: () => {
        clearTimeout(watch);
        watch = setTimeout(abort, beat);
      },
      told: (body) => {
        if (body.type === "stream.opened") {
          beat = body.beat_ms * 2.5;
          this.#tries = this.#blocked = 0;
          this.linked("open");
        }
        this.#sort(body);
      },
    };
    try {
      await this.#wire.listen(ear, cut.signal);
    } finally {
      clearTimeout(watch);
      signal.removeEventListener("abort", abort);
      this.#flush();
    }
  }

  #sort(body: SylphEvent | Note): void {
    switch (body.type) {
      case "stream.reset":
        this.#waiting.delete(body.session);
        this.#followers.get(body.session)?.reset();
        return;
      case "stream.gone":
        this.#followers.get(body.session)?.gone();
        return;
      case "stream.opened":
      case "session.changed":
      case "session.removed":
      case "config.changed":
        this.told(body);
        return;
    }
    const event = body as SylphEvent;
    if (!event.session) return;
    const waiting = this.#waiting.get(event.session);
    if (waiting) waiting.push(event);
    else this.#waiting.set(event.session, [event]);
    if (!this.#due) {
      this.#due = true;
      this.soon(() => this.#flush());
    }
  }

  /** Hands over what has gathered: drawing once for many events is what keeps up with a fast model. */
  #flush(): void {
    this.#due = false;
    const gathered = this.#waiting;
    this.#waiting = new Map();
    for (const [session, events] of gathered) this.#followers.get(session)?.take(events);
  }
}
