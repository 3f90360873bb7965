import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Problem } from "../../net/api";
import type { NewMessage } from "../../net/session-api";
import { Outbox } from "./outbox.svelte";

const problem = (status: number): Problem => new Problem({ title: "", status, detail: `status ${status}`, kind: "x" });

/** A server that does with each message what is said next. */
class Server {
  got: [string, string][] = [];
  plan: (Problem | null | Promise<void>)[] = [];
  send = async (_: string, message: NewMessage, key: string): Promise<void> => {
    const next = this.plan.shift();
    if (next instanceof Problem) throw next;
    if (next) await next;
    this.got.push([message.text, key]);
  };
  get texts(): string[] {
    return this.got.map(([text]) => text);
  }
}

class Store {
  items = new Map<string, string>();
  getItem = (key: string): string | null => this.items.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.items.set(key, value);
  removeItem = (key: string): void => void this.items.delete(key);
}

let server: Server;
let store: Store;
const box = (): Outbox => new Outbox("s", server.send, () => store);
const settle = async (ms = 0): Promise<unknown> => await vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  store = new Store();
});
afterEach(() => vi.useRealTimers());

describe("outbox", () => {
  it("sends in order, also what comes while one is on its way", async () => {
    let go = (): void => {};
    server.plan = [new Promise<void>((done) => (go = done))];
    const outbox = box();
    outbox.sendLater("one", [], "steer");
    outbox.sendLater("two", [], "steer");
    await settle();
    expect(server.texts).toEqual([]);
    go();
    await settle();
    expect(server.texts).toEqual(["one", "two"]);
    expect(outbox.list).toEqual([]);
    expect(store.items.size).toBe(0);
  });

  it("says nothing of what is quickly through", async () => {
    server.plan = [new Promise<void>((done) => setTimeout(done, 1000))];
    const outbox = box();
    outbox.sendLater("one", [], "steer");
    expect(outbox.list.map((one) => one.late)).toEqual([false]);
    await settle(500);
    expect(outbox.list.map((one) => one.late)).toEqual([true]);
    await settle(600);
    expect(outbox.list).toEqual([]);
  });

  it("tries again by itself what did not get through, with the same key", async () => {
    server.plan = [problem(0), problem(503)];
    const outbox = box();
    outbox.sendLater("one", [], "steer");
    const key = outbox.list[0]?.key;
    await settle();
    expect(outbox.list[0]?.why).toBe("status 0");
    outbox.retryNow();
    await settle();
    expect(outbox.list[0]?.why).toBe("status 503");
    await settle(5000);
    expect(server.got).toEqual([["one", key]]);
  });

  it("keeps what was refused for the person, and lets the rest pass", async () => {
    server.plan = [problem(413)];
    const outbox = box();
    outbox.sendLater("too long", [], "steer");
    outbox.sendLater("short", [], "steer");
    await settle(20_000);
    expect(server.texts).toEqual(["short"]);
    expect(outbox.list.map((one) => [one.text, one.refused])).toEqual([["too long", true]]);
    outbox.retry(outbox.list[0]?.key ?? "");
    await settle();
    expect(server.texts).toEqual(["short", "too long"]);
  });

  it("goes on after the page was loaded anew, with the same key", async () => {
    server.plan = [new Promise<void>(() => {})];
    const outbox = box();
    outbox.sendLater("one", [], "follow");
    await settle();
    box();
    await settle();
    expect(server.got).toEqual([["one", outbox.list[0]?.key]]);
  });

  it("gives back what is to be written anew", async () => {
    server.plan = [problem(413)];
    const outbox = box();
    outbox.sendLater("one", [], "steer");
    await settle();
    expect(outbox.takeBack(outbox.list[0]?.key ?? "")?.text).toBe("one");
    expect(outbox.list).toEqual([]);
  });

  it("does without what is kept where that is spoilt", () => {
    store.setItem("outbox:s", "{");
    expect(box().list).toEqual([]);
  });
});
