// @vitest-environment node
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { SylphEvent } from "../log/events";
import { type ConnectionState, EventStream, type SessionFollower, type StreamNote } from "./event-stream";

const BEAT = 1000;

/** A server that the test speaks for: by WebSocket, and by server-sent events where those are blocked. */
class Server {
  /** How it was asked for a stream, each time. */
  asked: string[] = [];
  /** What it was told over the stream that is open. */
  heard: object[] = [];
  /** What it is asked besides. */
  posted: unknown[] = [];
  refuse = 0;
  blocked = false;
  #pipes: ReadableStreamDefaultController<Uint8Array>[] = [];
  #socket: FakeSocket | null = null;

  fetch = async (path: string, wish: RequestInit): Promise<Response> => {
    if (this.refuse < 0) throw new TypeError("no network");
    if (this.refuse) return Response.json({ title: "no", status: this.refuse, detail: "no", kind: "no" }, { status: this.refuse });
    if (path.endsWith("/login")) return Response.json({});
    if (wish.method === "POST") {
      this.posted.push(JSON.parse(wish.body as string));
      return Response.json({});
    }
    this.asked.push(decodeURIComponent(path));
    const body = new ReadableStream<Uint8Array>({
      start: (pipe) => {
        this.#pipes.push(pipe);
        wish.signal?.addEventListener("abort", () => pipe.error(new DOMException("cut", "AbortError")));
      },
    });
    return new Response(body);
  };

  connect(socket: FakeSocket): void {
    this.asked.push(socket.url);
    this.heard = [];
    if (this.refuse || this.blocked) queueMicrotask(() => socket.onclose?.());
    else this.#socket = socket;
  }

  async tell(...bodies: object[]): Promise<void> {
    for (const body of bodies) {
      const data = JSON.stringify(body);
      if (this.blocked) this.#pipes.at(-1)?.enqueue(new TextEncoder().encode(`data: ${data}\n\n`));
      else this.#socket?.onmessage?.({ data });
    }
    await settle();
  }

  async beat(): Promise<void> {
    if (!this.blocked) return await this.tell({ type: "beat", ts: 1 });
    this.#pipes.at(-1)?.enqueue(new TextEncoder().encode(": beat\n\n"));
    await settle();
  }

  async cut(): Promise<void> {
    if (this.blocked) this.#pipes.at(-1)?.close();
    else this.#socket?.onclose?.();
    await settle();
  }

  open(): Promise<void> {
    return this.tell({ type: "stream.opened", client: `c${this.asked.length}`, beat_ms: BEAT, version: "1" });
  }
}

class FakeSocket {
  static OPEN = 1;
  readyState = 1;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor(readonly url: string) {
    server.connect(this);
  }

  send(text: string): void {
    server.heard.push(JSON.parse(text) as object);
  }

  close(): void {
    this.readyState = 3;
  }
}

class Reader implements SessionFollower {
  facts: number[] = [];
  batches = 0;
  resets = 0;
  lost = 0;
  lastSeq = (): number => this.facts.at(-1) ?? 0;
  applyEvents(events: SylphEvent[]): void {
    this.batches++;
    for (const event of events) if (event.seq === this.lastSeq() + 1) this.facts.push(event.seq);
  }
  reset(): void {
    this.resets++;
    this.facts = [];
  }
  markGone(): void {
    this.lost++;
  }
}

/** Streams take a few turns of the real loop, which is not faked. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await new Promise((done) => setImmediate(done));
};
const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
  await settle();
};
const fact = (seq: number, session = "s"): object => ({ v: 1, session, seq, turn: "", ts: 0, actor: "", cause: 0, hash: "", type: "x", data: {} });

let server: Server;
let stream: EventStream;
let links: ConnectionState[];
let notes: StreamNote[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("location", { protocol: "http:", host: "here" });
  links = [];
  notes = [];
  stream = new EventStream(
    (note) => notes.push(note),
    (link) => links.push(link),
    (work) => setTimeout(work, 16),
  );
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("asks for what is followed from where it stands, and hands over in bunches", async () => {
  const reader = new Reader();
  reader.facts = [1, 2, 3];
  stream.follow("s", reader);
  stream.start();
  await settle();
  expect(server.asked).toEqual(["ws://here/ws"]);
  await server.open();
  expect(server.heard).toEqual([{ type: "notes", on: true }, { type: "subscribe", id: "s", session: "s", after: 3 }]);
  await server.tell(fact(4), fact(5), fact(6, "other"));
  expect(reader.batches).toBe(0);
  await pass(16);
  expect([reader.batches, reader.facts.at(-1)]).toEqual([1, 5]);
  expect(notes.map((note) => note.type)).toEqual(["stream.opened"]);
});

it("is opened anew after a cut, from the last fact, and keeps what had come", async () => {
  const reader = new Reader();
  stream.follow("s", reader);
  stream.start();
  await settle();
  await server.open();
  await server.tell(fact(1), fact(2));
  await server.cut();
  expect(reader.facts).toEqual([1, 2]);
  expect(links).toEqual(["connecting", "open", "waiting"]);
  await pass(300);
  await server.open();
  expect(server.heard.at(-1)).toEqual({ type: "subscribe", id: "s", session: "s", after: 2 });
  await server.tell(fact(2), fact(3));
  await pass(16);
  expect(reader.facts).toEqual([1, 2, 3]);
});

it("waits longer each time, up to a quarter of a minute, and not at all when told to hurry", async () => {
  server.refuse = -1;
  stream.start();
  await pass(120_000);
  const many = server.asked.length;
  expect(many).toBeGreaterThan(10);
  expect(many).toBeLessThan(30);
  await pass(15_000);
  expect(server.asked.length - many).toBeLessThanOrEqual(3);
  const before = server.asked.length;
  stream.reconnectNow();
  await settle();
  expect(server.asked.length).toBe(before + 1);
});

it("takes silence for a cut", async () => {
  stream.start();
  await settle();
  await server.open();
  for (let beat = 0; beat < 5; beat++) {
    await pass(BEAT * 2);
    await server.beat();
  }
  expect(server.asked.length).toBe(1);
  await pass(BEAT * 2.5 + 300);
  await settle();
  expect(server.asked.length).toBe(2);
});

it("begins a session anew when its log is another, and tells when it is gone", async () => {
  const reader = new Reader();
  stream.follow("s", reader);
  stream.start();
  await settle();
  await server.open();
  await server.tell(fact(1), { type: "stream.reset", session: "s" });
  await pass(16);
  // What had gathered is of the log that is no more.
  expect([reader.resets, reader.facts]).toEqual([1, []]);
  await server.tell({ type: "stream.gone", session: "s" });
  expect(reader.lost).toBe(1);
});

it("tells the server what to follow as that changes, but only while there is a stream", async () => {
  const reader = new Reader();
  stream.follow("s", reader);
  stream.start();
  await settle();
  expect(server.heard).toEqual([]);
  await server.open();
  stream.follow("t", reader);
  stream.unfollow("s");
  expect(server.heard.slice(2)).toEqual([
    { type: "subscribe", id: "t", session: "t", after: 0 },
    { type: "unsubscribe", session: "s" },
  ]);
  await server.tell(fact(1, "s"));
  await pass(16);
  expect(reader.facts).toEqual([]);
});

it("knows that a session is gone by what is said to following it, and of no other trouble", async () => {
  const reader = new Reader();
  stream.follow("s", reader);
  stream.start();
  await settle();
  await server.open();
  await server.tell({ type: "ack", id: "s" }, { type: "problem", id: "s", problem: { status: 429 } }, { type: "problem", id: "", problem: { status: 404 } });
  expect(reader.lost).toBe(0);
  await server.tell({ type: "problem", id: "s", problem: { status: 404 } });
  expect(reader.lost).toBe(1);
});

it("goes by server-sent events where a WebSocket is blocked, and nothing else is", async () => {
  server.blocked = true;
  const reader = new Reader();
  reader.facts = [1, 2, 3];
  stream.follow("s", reader);
  stream.start();
  await pass(2000);
  expect(server.asked).toEqual(["ws://here/ws", "ws://here/ws", "/api/v1/stream?sessions=s:3"]);
  await server.open();
  await server.tell(fact(4));
  stream.follow("t", reader);
  await server.beat();
  await pass(16);
  expect(reader.facts).toEqual([1, 2, 3, 4]);
  expect(server.posted).toEqual([{ sessions: [{ id: "s", after: 3 }, { id: "t", after: 3 }] }]);
  await server.cut();
  await pass(2000);
  expect(server.asked.at(-1)).toBe("/api/v1/stream?sessions=s:4,t:4");
});

it("does not take a server that is away for one that blocks", async () => {
  server.refuse = -1;
  stream.start();
  await pass(20_000);
  expect(new Set(server.asked)).toEqual(new Set(["ws://here/ws"]));
});

it("ends where it is not known any more, and when it is told to", async () => {
  server.refuse = 401;
  stream.start();
  await pass(60_000);
  expect(server.asked.length).toBe(1);
  stream.stop();
  server.refuse = 0;
  stream.start();
  await settle();
  await server.open();
  stream.stop();
  await pass(60_000);
  expect(server.asked.length).toBe(2);
});
