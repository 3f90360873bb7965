/** The two ways to hear from the server, which tell the same: a WebSocket, and server-sent events where that is blocked. */

import type { SylphEvent } from "../log/events";
import { postJson, Problem, type ProblemDetails, sendRequest } from "./api";
import type { StreamNote } from "./event-stream";
import { SseParser } from "./sse-parser";

/** A session, and the last fact of it that is known. */
export interface StreamPosition {
  id: string;
  after: number;
}

export interface TransportListener {
  onMessage(body: SylphEvent | StreamNote): void;
  /** Something came, if only a sign of life. */
  onActivity(): void;
}

export interface StreamTransport {
  /** Returns when it has ended. Raises a Problem where the server is not there, or does not want us. */
  listen(ear: TransportListener, signal: AbortSignal): Promise<void>;
  /** Changes what is followed, while it is open. */
  follow(place: StreamPosition): void;
  unfollow(id: string): void;
}

type SocketReply = { type: "ack" | "pong" | "beat" } | { type: "problem"; id: string; problem: ProblemDetails };

/** Browsers keep these apart from the few connections a site may have: any number of tabs can have one. */
export class WebSocketTransport implements StreamTransport {
  #open: WebSocket | null = null;

  constructor(private readonly places: () => StreamPosition[]) {}

  listen(ear: TransportListener, signal: AbortSignal): Promise<void> {
    return new Promise((done, fail) => {
      const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
      let opened = false;
      const finish = (): void => {
        signal.removeEventListener("abort", finish);
        socket.onmessage = socket.onclose = null;
        socket.close();
        this.#open = null;
        if (opened) done();
        else fail(new Problem({ title: "Offline", status: 0, detail: "The server does not answer.", kind: "offline" }));
      };
      // On a dead line the other end does not say goodbye: nobody waits for that.
      signal.addEventListener("abort", finish);
      socket.onclose = finish;
      socket.onmessage = (message: MessageEvent<string>) => {
        ear.onActivity();
        const body = JSON.parse(message.data) as SylphEvent | StreamNote | SocketReply;
        if (body.type === "stream.opened") {
          opened = true;
          this.#open = socket;
          this.#sendOrder({ type: "notes", on: true });
          for (const place of this.places()) this.follow(place);
        }
        this.#handleReply(body, ear);
      };
    });
  }

  follow({ id, after }: StreamPosition): void {
    this.#sendOrder({ type: "subscribe", id, session: id, after });
  }

  unfollow(id: string): void {
    this.#sendOrder({ type: "unsubscribe", session: id });
  }

  #handleReply(body: SylphEvent | StreamNote | SocketReply, ear: TransportListener): void {
    switch (body.type) {
      case "ack":
      case "pong":
      case "beat":
        return;
      case "problem":
        if (body.id && body.problem.status === 404) ear.onMessage({ type: "stream.gone", session: body.id });
        return;
      default:
        ear.onMessage(body as SylphEvent | StreamNote);
    }
  }

  #sendOrder(order: object): void {
    if (this.#open?.readyState === WebSocket.OPEN) this.#open.send(JSON.stringify(order));
  }
}

/** One request that goes on for as long as one listens; what is followed is changed by others. */
export class SseTransport implements StreamTransport {
  #client = "";

  constructor(private readonly places: () => StreamPosition[]) {}

  async listen(ear: TransportListener, signal: AbortSignal): Promise<void> {
    const places = this.places().map(({ id, after }) => `${id}:${after}`);
    try {
      const response = await sendRequest(`stream?sessions=${encodeURIComponent(places.join(","))}`, { signal });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        ear.onActivity();
        for (const message of parser.push(piece.value)) {
          const body = JSON.parse(message.data) as SylphEvent | StreamNote;
          if (body.type === "stream.opened") this.#client = body.client;
          ear.onMessage(body);
        }
      }
    } finally {
      this.#client = "";
    }
  }

  follow(): void {
    this.#subscribe();
  }

  unfollow(): void {
    this.#subscribe();
  }

  #subscribe(): void {
    if (!this.#client) return;
    postJson(`stream/${this.#client}`, { sessions: this.places() }).catch((error: unknown) => {
      // A stream that is not there any more is opened anew, with the right sessions.
      if (!(error instanceof Problem)) throw error;
    });
  }
}
