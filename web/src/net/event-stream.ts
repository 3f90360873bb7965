/**
 * The one stream of the app: every event of the sessions that are open, and a note of each change to any other.
 *
 * It keeps nothing but what it is asked to follow. Whoever follows says where it stands each time the stream is opened
 * anew, so a cut, a restart of the server or a night asleep ends where an unbroken stream would have.
 */

import type { SylphEvent } from "../log/events";
import { getJson, Problem } from "./api";
import { SseTransport, type StreamPosition, type StreamTransport, type TransportListener, WebSocketTransport } from "./transports";

export interface PendingQuestion {
  id: string;
  kind: string;
  question: string;
  detail?: string;
  choices?: string[];
  free?: boolean;
  call?: string;
}

/** What a session is now, as the server notes it. */
export interface SessionChange {
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
  questions?: PendingQuestion[];
}

export type StreamNote =
  | { type: "stream.opened"; client: string; beat_ms: number; version: string; started: number }
  | { type: "stream.reset"; session: string }
  | { type: "stream.gone"; session: string }
  | { type: "session.removed"; id: string }
  | { type: "config.changed" }
  | SessionChange;

export interface SessionFollower {
  /** The last fact it has. */
  lastSeq(): number;
  applyEvents(events: SylphEvent[]): void;
  /** What it has is not in the log: it begins anew. */
  reset(): void;
  markGone(): void;
}

export type ConnectionState = "connecting" | "open" | "waiting";

const MIN_RETRY_MS = 250;
const MAX_RETRY_MS = 15_000;
/** So often in a row a WebSocket fails where requests do not, until it is taken for blocked: by a proxy, say. */
const MAX_SOCKET_FAILURES = 2;

export class EventStream {
  #followers = new Map<string, SessionFollower>();
  #transport: StreamTransport = new WebSocketTransport(() => this.#listPositions());
  #socketFailures = 0;
  #abort: AbortController | null = null;
  #tries = 0;
  #wake: (() => void) | null = null;
  #gathered = new Map<string, SylphEvent[]>();
  #flushPlanned = false;

  constructor(
    private readonly onNote: (note: StreamNote) => void,
    private readonly onConnection: (link: ConnectionState) => void,
    private readonly schedule: (work: () => void) => void = (work) => {
      // A page in the background draws no frames, and still has to follow.
      if (document.hidden) setTimeout(work, 100);
      else requestAnimationFrame(work);
    },
  ) {}

  start(): void {
    if (this.#abort) return;
    this.#abort = new AbortController();
    void this.#connectForever(this.#abort.signal);
  }

  stop(): void {
    this.#abort?.abort();
    this.#abort = null;
    this.#wake?.();
  }

  /** Tries at once, where it would wait: the network is back, or somebody looks at the page. */
  reconnectNow(): void {
    this.#tries = 0;
    this.#wake?.();
  }

  follow(session: string, follower: SessionFollower): void {
    this.#followers.set(session, follower);
    this.#transport.follow({ id: session, after: follower.lastSeq() });
  }

  unfollow(session: string): void {
    this.#followers.delete(session);
    this.#gathered.delete(session);
    this.#transport.unfollow(session);
  }

  #listPositions(): StreamPosition[] {
    return [...this.#followers].map(([id, follower]) => ({ id, after: follower.lastSeq() }));
  }

  async #connectForever(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.onConnection("connecting");
      try {
        await this.#readUntilCut(signal);
        this.#tries = 0;
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return;
        if (!(await this.#isLoggedIn())) return;
      }
      if (signal.aborted) return;
      this.onConnection("waiting");
      const pause = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
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
  async #isLoggedIn(): Promise<boolean> {
    if (!(this.#transport instanceof WebSocketTransport)) return true;
    try {
      await getJson("login");
      if (++this.#socketFailures >= MAX_SOCKET_FAILURES) this.#transport = new SseTransport(() => this.#listPositions());
    } catch (error) {
      return !(error instanceof Problem && error.status === 401);
    }
    return true;
  }

  async #readUntilCut(signal: AbortSignal): Promise<void> {
    const cut = new AbortController();
    const abort = (): void => cut.abort();
    signal.addEventListener("abort", abort);
    let beat = 60_000;
    let watch = setTimeout(abort, beat);
    const ear: TransportListener = {
      onActivity: () => {
        clearTimeout(watch);
        watch = setTimeout(abort, beat);
      },
      onMessage: (body) => {
        if (body.type === "stream.opened") {
          beat = body.beat_ms * 2.5;
          this.#tries = this.#socketFailures = 0;
          this.onConnection("open");
        }
        this.#dispatch(body);
      },
    };
    try {
      await this.#transport.listen(ear, cut.signal);
    } finally {
      clearTimeout(watch);
      signal.removeEventListener("abort", abort);
      this.#flush();
    }
  }

  #dispatch(body: SylphEvent | StreamNote): void {
    switch (body.type) {
      case "stream.reset":
        this.#gathered.delete(body.session);
        this.#followers.get(body.session)?.reset();
        return;
      case "stream.gone":
        this.#followers.get(body.session)?.markGone();
        return;
      case "stream.opened":
      case "session.changed":
      case "session.removed":
      case "config.changed":
        this.onNote(body);
        return;
    }
    const event = body as SylphEvent;
    if (!event.session) return;
    const waiting = this.#gathered.get(event.session);
    if (waiting) waiting.push(event);
    else this.#gathered.set(event.session, [event]);
    if (!this.#flushPlanned) {
      this.#flushPlanned = true;
      this.schedule(() => this.#flush());
    }
  }

  /** Hands over what has gathered: drawing once for many events is what keeps up with a fast model. */
  #flush(): void {
    this.#flushPlanned = false;
    const gathered = this.#gathered;
    this.#gathered = new Map();
    for (const [session, events] of gathered) this.#followers.get(session)?.applyEvents(events);
  }
}
