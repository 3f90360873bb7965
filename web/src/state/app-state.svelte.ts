/** What all pages share: the stream, the sessions there are, the chats that are open, who one is. */

import { SvelteMap } from "svelte/reactivity";

import { getJson, loginLost, postJson, Problem, sendDelete } from "../net/api";
import { type ConnectionState, EventStream, type PendingQuestion, type SessionChange, type StreamNote } from "../net/event-stream";
import { OpenSession } from "./open-session.svelte";
import { toasts } from "./toasts.svelte";

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

class AppState {
  principal = $state.raw<Principal | null>(null);
  /** Whether it is known by now who one is. */
  ready = $state(false);
  /** The server knows us no more. What is on the screen stays there until somebody logs in again. */
  loggedOut = $state(false);
  /** Why it is not known yet who one is: the server did not answer. */
  offlineProblem = $state.raw<Problem | null>(null);
  /** When the server we speak to was started; another time is another process. */
  serverStarted = $state(0);
  /** How often the stream was opened. */
  streamOpenings = $state(0);
  /** How often the configuration was changed since, by whomever. */
  configChanges = $state(0);
  /** Whether all sessions are known. */
  sessionsLoaded = $state(false);
  connection = $state<ConnectionState>("connecting");
  sessions = new SvelteMap<string, SessionSummary>();
  #openSessions = new Map<string, OpenSession>();
  stream = new EventStream(
    (note) => this.#onNote(note),
    (link) => (this.connection = link),
  );

  /** When the stream last told of a session, counted in notes. */
  #lastNotes = new Map<string, number>();
  #noteCount = 0;
  #tries = 0;
  #otherTabs = new BroadcastChannel("sylph-login");

  async start(): Promise<void> {
    loginLost.addEventListener("lost", () => this.#onLoginLost());
    addEventListener("online", () => this.stream.reconnectNow());
    addEventListener("focus", () => this.loggedOut && void this.checkLogin());
    document.addEventListener("visibilitychange", () => !document.hidden && this.stream.reconnectNow());
    this.#otherTabs.addEventListener("message", (event) => this.#onTabMessage(event.data === "in"));
    await this.checkLogin();
    // Other tabs may have waited for this: a link that logs in opens a tab of its own.
    if (this.principal && !this.loggedOut) this.#otherTabs.postMessage("in");
  }

  /** Another tab of this browser has logged in, or out. */
  #onTabMessage(inside: boolean): void {
    if (!inside && this.principal) location.reload();
    else if (inside && (this.loggedOut || !this.principal)) void this.checkLogin();
  }

  /** Finds out who one is; goes on where it was, if that is known again. */
  async checkLogin(): Promise<void> {
    try {
      const me = await getJson<Principal>("login");
      // Another person may see other things: nothing of the one before stays.
      if (this.principal && this.principal.scopes.join() !== me.scopes.join()) return location.reload();
      this.principal = me;
      this.offlineProblem = null;
      this.loggedOut = false;
      this.#tries = 0;
      this.stream.start();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.loggedOut = error.status === 401;
      this.offlineProblem = this.loggedOut ? null : error;
      if (this.offlineProblem) setTimeout(() => this.offlineProblem && void this.checkLogin(), Math.min(15_000, 500 * 2 ** this.#tries++));
    }
    this.ready = true;
  }

  async logIn(key: string): Promise<void> {
    await postJson("login", { key });
    this.#otherTabs.postMessage("in");
    await this.checkLogin();
  }

  async logOut(): Promise<void> {
    await sendDelete("login");
    this.#otherTabs.postMessage("out");
    // Nothing that was seen stays in the page.
    location.assign("/");
  }

  #onLoginLost(): void {
    this.loggedOut = true;
    this.stream.stop();
  }

  openSession(id: string): OpenSession {
    const known = this.#openSessions.get(id);
    if (known) return known;
    const chat = new OpenSession(id, this.stream);
    this.#openSessions.set(id, chat);
    void chat.open();
    return chat;
  }

  closeSession(id: string): void {
    this.#openSessions.get(id)?.close();
    this.#openSessions.delete(id);
  }

  /** Whether one may do what needs this scope. */
  hasScope(scope: string): boolean {
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
      this.showProblem(error);
      return undefined;
    }
  }

  showProblem(error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401) toasts.showProblem(error);
  }

  /** Reads all sessions of a shelf. What is not there any more is forgotten. */
  async loadSessions(shelf: "open" | "archived" | "deleted" = "open"): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- it lives as long as this call
    const seen = new Set<string>();
    const since = this.#noteCount;
    const isNewer = (id: string): boolean => (this.#lastNotes.get(id) ?? 0) > since;
    const only = shelf === "open" ? "" : `&${shelf}=true`;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: SessionPage<SessionSummary> = await getJson(`sessions?limit=200&cursor=${encodeURIComponent(cursor)}${only}`);
      for (const row of page.items) {
        seen.add(row.id);
        // What the stream told meanwhile is newer than the list.
        if (!isNewer(row.id)) this.sessions.set(row.id, row);
      }
      cursor = page.next;
    }
    for (const row of this.sessions.values()) {
      const mine = (row.deleted ? "deleted" : row.archived ? "archived" : "open") === shelf;
      if (mine && !seen.has(row.id) && !isNewer(row.id)) this.sessions.delete(row.id);
    }
    if (shelf === "open") this.sessionsLoaded = true;
  }

  #onNote(note: StreamNote): void {
    if (note.type === "stream.opened") this.#onStreamOpened(note.started);
    else if (note.type === "session.removed") this.sessions.delete(note.id);
    else if (note.type === "config.changed") this.configChanges++;
    else if (note.type === "session.changed") {
      this.#lastNotes.set(note.id, ++this.#noteCount);
      this.sessions.set(note.id, { ...this.#summaryBefore(note), ...fieldsOfChange(note) });
    }
  }

  #onStreamOpened(started: number): void {
    this.serverStarted = started;
    // What was changed while nobody listened was told to nobody.
    if (this.streamOpenings++) this.configChanges++;
    toasts.dropOffline();
    this.loadSessions().catch((error: unknown) => this.showProblem(error));
  }

  #summaryBefore(note: SessionChange): SessionSummary {
    const known = this.sessions.get(note.id);
    // Whatever adds to a session's log holds it.
    if (known) return { ...known, interrupted: known.interrupted && known.seq >= note.seq };
    return { ...fieldsOfChange(note), asked: 0, pinned: false, archived: false, deleted: false, unread: false, parent: "", interrupted: false };
  }
}

function fieldsOfChange(note: SessionChange): Omit<SessionSummary, "pinned" | "archived" | "unread" | "parent" | "deleted" | "interrupted"> & Partial<SessionSummary> {
  const { questions = [], ...rest } = note;
  return { ...rest, questions, asked: questions.length };
}

export const app = new AppState();
