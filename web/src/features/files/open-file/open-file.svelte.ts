/** A file that is open: what it was when it was read, whether it was changed here, and whether somebody else changed it. */

import { Problem } from "../../../net/api";
import { edited } from "../../../ui/editor/line-endings";
import type { FileView, Store } from "../files-api";

/** Where the text is edited. */
export interface Desk {
  text(): string;
  /** Puts another text in place; one can go back to the one before. */
  replace(text: string): void;
  /** Says which text is the saved one. */
  saved(text: string): void;
}

export interface Theirs {
  /** Null where the file has gone. */
  view: FileView | null;
  etag: string;
}

export type News = "" | "renewed" | "changed" | "gone";

export class OpenFile {
  view = $state.raw<FileView | null>(null);
  etag = $state("");
  loading = $state(true);
  saving = $state(false);
  dirty = $state(false);
  problem = $state.raw<Problem | null>(null);
  /** What somebody else made of it while it was open. */
  news = $state<News>("");
  /** What it was before it was renewed. */
  before = $state.raw("");
  conflict = $state.raw<Theirs | null>(null);
  desk: Desk | null = null;
  #busy = false;

  constructor(
    readonly path: string,
    private readonly store: Pick<Store, "read" | "write" | "news">,
  ) {}

  get editable(): boolean {
    return this.view?.text !== null && this.view?.encoding !== "unknown";
  }

  /** What stands in the editor. */
  get mine(): string {
    return this.desk?.text() ?? edited(this.view?.text ?? "");
  }

  async open(): Promise<void> {
    this.loading = true;
    this.problem = null;
    try {
      const { value, etag } = await this.store.read(this.path);
      this.#take(value, etag);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.loading = false;
    }
  }

  /** Whether it is saved now. Where somebody was faster, it is the person who decides. */
  save(): Promise<boolean> {
    return this.#write(this.etag);
  }

  async #write(etag: string): Promise<boolean> {
    if (this.#busy || !this.view) return false;
    this.#busy = this.saving = true;
    this.problem = null;
    const text = this.mine;
    try {
      const written = await this.store.write(this.path, text, etag);
      this.etag = written.etag;
      this.view = { ...this.view, text, size: written.value.size, modified: written.value.modified };
      this.news = "";
      this.conflict = null;
      this.desk?.saved(text);
      return true;
    } catch (error) {
      if (error instanceof Problem && error.status === 412) await this.compare();
      else this.#failed(error);
      return false;
    } finally {
      this.#busy = this.saving = false;
    }
  }

  /** Looks whether somebody else has changed it. */
  async check(): Promise<void> {
    if (this.#busy || !this.view || this.conflict) return;
    this.#busy = true;
    try {
      const theirs = await this.#theirs();
      if (!theirs) this.news = this.news === "renewed" ? "renewed" : "";
      else if (!theirs.view) this.news = "gone";
      else if (this.dirty && !this.#same(theirs.view)) this.news = "changed";
      else this.#renew(theirs.view, theirs.etag);
    } catch (error) {
      // Whoever only looks does not complain: the next look, or saving, tells.
      if (!(error instanceof Problem)) throw error;
    } finally {
      this.#busy = false;
    }
  }

  /** Shows both versions, and lets the person choose. */
  async compare(): Promise<void> {
    try {
      await this.#meet();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Mine, over theirs as they were shown: what has changed since then is asked about again. */
  async overwrite(): Promise<boolean> {
    const theirs = this.conflict;
    this.conflict = null;
    return theirs ? await this.#write(theirs.etag) : false;
  }

  takeTheirs(): void {
    const theirs = this.conflict;
    this.conflict = null;
    if (theirs?.view) this.#take(theirs.view, theirs.etag);
  }

  goOn(): void {
    this.news = this.conflict?.view ? "changed" : "gone";
    this.conflict = null;
  }

  async #meet(): Promise<void> {
    const theirs = await this.#theirs();
    if (theirs?.view && this.#same(theirs.view)) this.#renew(theirs.view, theirs.etag);
    else this.conflict = theirs;
    if (!theirs) this.news = "";
  }

  async #theirs(): Promise<Theirs | null> {
    try {
      const now = await this.store.news(this.path, this.etag);
      return now ? { view: now.value, etag: now.etag } : null;
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return { view: null, etag: "" };
      throw error;
    }
  }

  #same(view: FileView): boolean {
    return view.text !== null && edited(view.text) === this.mine;
  }

  #renew(view: FileView, etag: string): void {
    const before = edited(this.view?.text ?? "");
    const seen = this.#same(view);
    this.#take(view, etag);
    this.before = before;
    this.news = seen ? "" : "renewed";
  }

  #take(view: FileView, etag: string): void {
    this.view = view;
    this.etag = etag;
    this.news = "";
    const text = edited(view.text ?? "");
    if (this.desk && this.desk.text() !== text) this.desk.replace(text);
    this.desk?.saved(text);
    if (!this.desk) this.dirty = false;
  }

  #failed(error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    this.problem = error;
  }
}
