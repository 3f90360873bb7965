/** What all pages share: the stream, the sessions there are, the chats that are open, who one is. */

import { SvelteMap } from "svelte/reactivity";

import { getJson, loginLost, postJson, Problem, sendDelete } from "../net/api";
import { type SessionChange, type ConnectionState, type StreamNote, type PendingQuestion, EventStream } from "../net/event-stream";
import { toasts } from "./toasts.svelte";
import { OpenSession } from "./open-session.svelte";

/** A session as lists show it. */
export interface SessionSummary {
  id: string;
  title: string;
  workspace: string;
  model: string;
  mode: string;
  state: string;
  created: number;
  updated: number;
  seq: number;
  turns: number;
  asked: number;
  pinned: boolean;
  archived: boolean;
  deleted: boolean;
  unread: boolean;
  parent: string;
  /** A turn was left open by a process that is gone. */
  interrupted: boolean;
  /** What it asks, as far as the stream has told. */
  questions?: PendingQuestion[];
}

export interface Principal {
  id: string;
  name: string;
  way: string;
  scopes: string[];
  expires?: number;
}

interface SessionPage<T> {
  items: T[];
  next: string | null;
}

class App {
  principal = $state.raw<Principal | null>(null);
  /** Whether it is known by now who one is. */
  settled = $state(false);
  /** The server knows us no more. What is on the screen stays there until somebody logs in again. */
  out = $state(false);
  /** Why it is not known yet who one is: the server did not answer. */
  away = $state.raw<Problem | null>(null);
  /** When the server we speak to was started; another time is another process. */
  started = $state(0);
  /** How often the stream was opened. */
  opened = $state(0);
  /** How often the configuration was changed since, by whomever. */
  configured = $state(0);
  /** Whether all sessions are known. */
  listed = $state(false);
  link = $state<ConnectionState>("connecting");
  rows = new SvelteMap<string, SessionSummary>();
  #chats = new Map<string, OpenSession>();
  stream = new EventStream(
    (note) => this.#note(note),
    (link) => (this.link = link),
  );

  /** When the stream last told of a session, counted in notes. */
  #told = new Map<string, number>();
  #notes = 0;
  #tries = 0;
  #others = new BroadcastChannel("sylph-login");

  async begin(): Promise<void> {
    loginLost.addEventListener("lost", () => this.#leave());
    addEventListener("online", () => this.stream.reconnectNow());
    addEventListener("focus", () => this.out && void this.enter());
    document.addEventListener("visibilitychange", () => !document.hidden && this.stream.reconnectNow());
    this.#others.addEventListener("message", (event) => this.#heard(event.data === "in"));
    await this.enter();
    // Other tabs may have waited for this: a link that logs in opens a tab of its own.
    if (this.principal && !this.out) this.#others.postMessage("in");
  }

  /** Another tab of this browser has logged in, or out. */
  #heard(inside: boolean): void {
    if (!inside && this.principal) location.reload();
    else if (inside && (this.out || !this.principal)) void this.enter();
  }

  /** Finds out who one is; goes on where it was, if that is known again. */
  async enter(): Promise<void> {
    try {
      const me = await getJson<Principal>("login");
      // Another person may see other things: nothing of the one before stays.
      if (this.principal && this.principal.scopes.join() !== me.scopes.join()) return location.reload();
      this.principal = me;
      this.away = null;
      this.out = false;
      this.#tries = 0;
      this.stream.start();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.out = error.status === 401;
      this.away = this.out ? null : error;
      if (this.away) setTimeout(() => this.away && void this.enter(), Math.min(15_000, 500 * 2 ** this.#tries++));
    }
    this.settled = true;
  }

  async login(key: string): Promise<void> {
    await postJson("login", { key });
    this.#others.postMessage("in");
    await this.enter();
  }

  async logout(): Promise<void> {
    await sendDelete("login");
    this.#others.postMessage("out");
    // Nothing that was seen stays in the page.
    location.assign("/");
  }

  #leave(): void {
    this.out = true;
    this.stream.stop();
  }

  chat(id: string): OpenSession {
    const known = this.#chats.get(id);
    if (known) return known;
    const chat = new OpenSession(id, this.stream);
    this.#chats.set(id, chat);
    void chat.open();
    return chat;
  }

  leave(id: string): void {
    this.#chats.get(id)?.close();
    this.#chats.delete(id);
  }

  /** Whether one may do what needs this scope. */
  may(scope: string): boolean {
    const scopes = this.principal?.scopes ?? [];
    return scopes.includes(scope) || scopes.includes("admin");
  }

  /** Does something that the server may refuse; what goes wrong is shown. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    const begun = Date.now();
    try {
      const made = await work();
      toasts.dropProblemsBefore(begun);
      return made;
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  fail(error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401) toasts.showProblem(error);
  }

  /** Reads all sessions of a shelf. What is not there any more is forgotten. */
  async list(shelf: "open" | "archived" | "deleted" = "open"): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- it lives as long as this call
    const seen = new Set<string>();
    const since = this.#notes;
    const newer = (id: string): boolean => (this.#told.get(id) ?? 0) > since;
    const only = shelf === "open" ? "" : `&${shelf}=true`;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: SessionPage<SessionSummary> = await getJson(`sessions?limit=200&cursor=${encodeURIComponent(cursor)}${only}`);
      for (const row of page.items) {
        seen.add(row.id);
        // What the stream told meanwhile is newer than the list.
        if (!newer(row.id)) this.rows.set(row.id, row);
      }
      cursor = page.next;
    }
    for (const row of this.rows.values()) {
      const mine = (row.deleted ? "deleted" : row.archived ? "archived" : "open") === shelf;
      if (mine && !seen.has(row.id) && !newer(row.id)) this.rows.delete(row.id);
    }
    if (shelf === "open") this.listed = true;
  }

  #note(note: StreamNote): void {
    if (note.type === "stream.opened") this.#opened(note.started);
    else if (note.type === "session.removed") this.rows.delete(note.id);
    else if (note.type === "config.changed") this.configured++;
    else if (note.type === "session.changed") {
      this.#told.set(note.id, ++this.#notes);
      this.rows.set(note.id, { ...this.#row(note), ...fieldsOfChange(note) });
    }
  }

  #opened(started: number): void {
    this.started = started;
    // What was changed while nobody listened was told to nobody.
    if (this.opened++) this.configured++;
    toasts.dropOffline();
    this.list().catch((error: unknown) => this.fail(error));
  }

  #row(note: SessionChange): SessionSummary {
    const known = this.rows.get(note.id);
    // Whatever adds to a session's log holds it.
    if (known) return { ...known, interrupted: known.interrupted && known.seq >= note.seq };
    return { ...fieldsOfChange(note), asked: 0, pinned: false, archived: false, deleted: false, unread: false, parent: "", interrupted: false };
  }
}

function fieldsOfChange(note: SessionChange): Omit<SessionSummary, "pinned" | "archived" | "unread" | "parent" | "deleted" | "interrupted"> & Partial<SessionSummary> {
  const { questions = [], ...rest } = note;
  return { ...rest, questions, asked: questions.length };
}

export const app = new App();
