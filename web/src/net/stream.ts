/**
 * The one stream of the app: every event of the sessions that are open, and a note of each change to any other.
 *
 * It keeps nothing but what it is asked to follow. Whoever follows says where it stands each time the stream is opened
 * anew, so a cut, a restart of the server or a night asleep ends where an unbroken stream would have.
 */

import type { SylphEvent } from "../log/events";
import { Problem, post, send } from "./api";
import { Parser } from "./sse";

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

export class Stream {
  #followers = new Map<string, Follower>();
  #client = "";
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
    this.#subscribe();
  }

  leave(session: string): void {
    this.#followers.delete(session);
    this.#waiting.delete(session);
    this.#subscribe();
  }

  #subscribe(): void {
    if (!this.#client) return;
    const sessions = [...this.#followers].map(([id, follower]) => ({ id, after: follower.seq() }));
    post(`stream/${this.#client}`, { sessions }).catch((error: unknown) => {
      // A stream that is not there any more is opened anew, with the right sessions.
      if (!(error instanceof Problem)) throw error;
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.linked("connecting");
      try {
        await this.#read(signal);
        this.#tries = 0;
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return;
      }
      this.#client = "";
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

  async #read(signal: AbortSignal): Promise<void> {
    const places = [...this.#followers].map(([id, follower]) => `${id}:${follower.seq()}`).join(",");
    const cut = new AbortController();
    const abort = (): void => cut.abort();
    signal.addEventListener("abort", abort);
    let beat = 60_000;
    let watch = setTimeout(abort, beat);
    try {
      const response = await send(`stream?sessions=${encodeURIComponent(places)}`, { signal: cut.signal });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        clearTimeout(watch);
        watch = setTimeout(abort, beat);
        for (const message of parser.push(piece.value)) {
          const body = JSON.parse(message.data) as SylphEvent | Note;
          if (body.type === "stream.opened") {
            beat = body.beat_ms * 2.5;
            this.#client = body.client;
            this.#tries = 0;
            this.linked("open");
          }
          this.#sort(body);
        }
      }
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
