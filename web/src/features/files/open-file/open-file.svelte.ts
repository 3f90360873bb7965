/** A file that is open: what it was when it was read, whether it was changed here, and whether somebody else changed it. */

import { Problem } from "../../../net/api";
import type { TextBuffer } from "../../../ui/editor/code-editor";
import { normalizeLineEnds } from "../../../ui/editor/line-endings";
import type { FilesApi, FileView } from "../files-api";

export interface ForeignVersion {
  /** Null where the file has gone. */
  view: FileView | null;
  etag: string;
}

export type ForeignChange = "" | "renewed" | "changed" | "gone";

export class OpenFile {
  view = $state.raw<FileView | null>(null);
  etag = $state("");
  loading = $state(true);
  saving = $state(false);
  dirty = $state(false);
  problem = $state.raw<Problem | null>(null);
  /** What somebody else made of it while it was open. */
  foreignChange = $state<ForeignChange>("");
  /** What it was before it was renewed. */
  textBefore = $state.raw("");
  conflict = $state.raw<ForeignVersion | null>(null);
  buffer: TextBuffer | null = null;
  #busy = false;

  constructor(
    readonly path: string,
    private readonly filesApi: Pick<FilesApi, "readText" | "writeText" | "readTextIfChanged">,
  ) {}

  get editable(): boolean {
    return this.view?.text !== null && this.view?.encoding !== "unknown";
  }

  /** What stands in the editor. */
  get ownText(): string {
    return this.buffer?.text() ?? normalizeLineEnds(this.view?.text ?? "");
  }

  async open(): Promise<void> {
    this.loading = true;
    this.problem = null;
    try {
      const { value, etag } = await this.filesApi.readText(this.path);
      this.#setSaved(value, etag);
    } catch (error) {
      this.#setProblem(error);
    } finally {
      this.loading = false;
    }
  }

  /** Whether it is saved now. Where somebody was faster, it is the person who decides. */
  save(): Promise<boolean> {
    return this.#writeOver(this.etag);
  }

  async #writeOver(etag: string): Promise<boolean> {
    if (this.#busy || !this.view) return false;
    this.#busy = this.saving = true;
    this.problem = null;
    const text = this.ownText;
    try {
      const written = await this.filesApi.writeText(this.path, text, etag);
      this.etag = written.etag;
      this.view = { ...this.view, text, size: written.value.size, modified: written.value.modified };
      this.foreignChange = "";
      this.conflict = null;
      this.buffer?.markSaved(text);
      return true;
    } catch (error) {
      if (error instanceof Problem && error.status === 412) await this.compare();
      else this.#setProblem(error);
      return false;
    } finally {
      this.#busy = this.saving = false;
    }
  }

  /** Looks whether somebody else has changed it. */
  async checkForChanges(): Promise<void> {
    if (this.#busy || !this.view || this.conflict) return;
    this.#busy = true;
    try {
      const theirs = await this.#readForeignVersion();
      if (!theirs) this.foreignChange = this.foreignChange === "renewed" ? "renewed" : "";
      else if (!theirs.view) this.foreignChange = "gone";
      else if (this.dirty && !this.#isOwnText(theirs.view)) this.foreignChange = "changed";
      else this.#adoptForeignChange(theirs.view, theirs.etag);
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
      await this.#compareVersions();
    } catch (error) {
      this.#setProblem(error);
    }
  }

  /** Mine, over theirs as they were shown: what has changed since then is asked about again. */
  async overwrite(): Promise<boolean> {
    const theirs = this.conflict;
    this.conflict = null;
    return theirs ? await this.#writeOver(theirs.etag) : false;
  }

  takeTheirs(): void {
    const theirs = this.conflict;
    this.conflict = null;
    if (theirs?.view) this.#setSaved(theirs.view, theirs.etag);
  }

  keepEditing(): void {
    this.foreignChange = this.conflict?.view ? "changed" : "gone";
    this.conflict = null;
  }

  async #compareVersions(): Promise<void> {
    const theirs = await this.#readForeignVersion();
    if (theirs?.view && this.#isOwnText(theirs.view)) this.#adoptForeignChange(theirs.view, theirs.etag);
    else this.conflict = theirs;
    if (!theirs) this.foreignChange = "";
  }

  async #readForeignVersion(): Promise<ForeignVersion | null> {
    try {
      const now = await this.filesApi.readTextIfChanged(this.path, this.etag);
      return now ? { view: now.value, etag: now.etag } : null;
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return { view: null, etag: "" };
      throw error;
    }
  }

  #isOwnText(view: FileView): boolean {
    return view.text !== null && normalizeLineEnds(view.text) === this.ownText;
  }

  #adoptForeignChange(view: FileView, etag: string): void {
    const before = normalizeLineEnds(this.view?.text ?? "");
    const seen = this.#isOwnText(view);
    this.#setSaved(view, etag);
    this.textBefore = before;
    this.foreignChange = seen ? "" : "renewed";
  }

  #setSaved(view: FileView, etag: string): void {
    this.view = view;
    this.etag = etag;
    this.foreignChange = "";
    const text = normalizeLineEnds(view.text ?? "");
    if (this.buffer && this.buffer.text() !== text) this.buffer.replace(text);
    this.buffer?.markSaved(text);
    if (!this.buffer) this.dirty = false;
  }

  #setProblem(error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    this.problem = error;
  }
}
