/**
 * Messages on their way to the server, one after the other. They leave the box at once and stay here until the server
 * has them: each carries a key, so that sending it again, even after the page was loaded anew, makes no second one.
 */

import { Problem } from "../../net/api";
import { type MessageDelivery, type NewMessage, sendMessage } from "../../net/session-api";
import { appendTextFiles, type Attachment, encodeAttachments } from "./attachments";
import type { KeyValueStore } from "./drafts";

/** For so long nothing is said of a message: most are through by then. */
const SILENT_MS = 400;
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 15_000;

export interface OutgoingMessage {
  key: string;
  text: string;
  delivery: MessageDelivery;
  files: readonly Attachment[];
  /** Whether it takes so long that it is worth a word. */
  late: boolean;
  /** Why it is not there yet. */
  why: string;
  /** The server has refused it: it is not tried again by itself. */
  refused: boolean;
}

type SendMessage = (session: string, message: NewMessage, key: string) => Promise<unknown>;

export class Outbox {
  list = $state.raw<OutgoingMessage[]>([]);
  #running = false;
  #wake: (() => void) | null = null;

  constructor(
    readonly session: string,
    private readonly sender: SendMessage = sendMessage,
    private readonly storage: () => KeyValueStore = () => sessionStorage,
  ) {
    this.list = this.#restoreList();
    if (this.list.length) void this.#sendAll();
  }

  sendLater(text: string, files: readonly Attachment[], delivery: MessageDelivery): void {
    const one: OutgoingMessage = { key: crypto.randomUUID(), text, delivery, files, late: false, why: "", refused: false };
    this.#setList([...this.list, one]);
    setTimeout(() => this.#changeMessage(one.key, { late: true }), SILENT_MS);
    void this.#sendAll();
  }

  /** Tries at once: somebody wants it, or the server is there again. */
  retryNow(): void {
    this.#wake?.();
    void this.#sendAll();
  }

  retry(key: string): void {
    this.#changeMessage(key, { refused: false, why: "" });
    this.retryNow();
  }

  /** Takes a message out, to be written anew. */
  takeBack(key: string): OutgoingMessage | undefined {
    const found = this.list.find((one) => one.key === key);
    this.#setList(this.list.filter((one) => one.key !== key));
    return found;
  }

  async #sendAll(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    let tries = 0;
    for (let next = this.#nextMessage(); next; next = this.#nextMessage()) {
      try {
        await this.#sendOne(next);
        this.takeBack(next.key);
        tries = 0;
      } catch (error) {
        if (!(error instanceof Problem)) {
          this.#running = false;
          throw error;
        }
        const passing = error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500;
        this.#changeMessage(next.key, { why: error.message, refused: !passing, late: true });
        if (passing) await this.#waitMs(Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** tries++));
      }
    }
    this.#running = false;
  }

  #nextMessage(): OutgoingMessage | undefined {
    return this.list.find((one) => !one.refused);
  }

  async #sendOne(one: OutgoingMessage): Promise<void> {
    const attachments = await encodeAttachments(one.files);
    const message: NewMessage = { text: appendTextFiles(one.text, one.files), delivery: one.delivery };
    await this.sender(this.session, attachments.length ? { ...message, attachments } : message, one.key);
  }

  #waitMs(ms: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = null;
        done();
      };
    });
  }

  #changeMessage(key: string, what: Partial<OutgoingMessage>): void {
    if (this.list.some((one) => one.key === key)) this.#setList(this.list.map((one) => (one.key === key ? { ...one, ...what } : one)));
  }

  #setList(list: OutgoingMessage[]): void {
    this.list = list;
    // Files are too large to be kept.
    const texts = list.filter((one) => !one.files.length).map(({ key, text, delivery }) => ({ key, text, delivery }));
    try {
      if (texts.length) this.storage().setItem(`outbox:${this.session}`, JSON.stringify(texts));
      else this.storage().removeItem(`outbox:${this.session}`);
    } catch {
      // They are in memory.
    }
  }

  #restoreList(): OutgoingMessage[] {
    try {
      const texts = JSON.parse(this.storage().getItem(`outbox:${this.session}`) ?? "[]") as Pick<OutgoingMessage, "key" | "text" | "delivery">[];
      return texts.map((one) => ({ ...one, files: [], late: true, why: "", refused: false }));
    } catch {
      return [];
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- which ones there are is nothing to be drawn
const boxes = new Map<string, Outbox>();

/** The outbox of a session: it goes on while one looks at another. */
export function outboxOf(session: string): Outbox {
  const known = boxes.get(session) ?? new Outbox(session);
  boxes.set(session, known);
  return known;
}
