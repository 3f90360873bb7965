/** Texts that are being edited: kept apart from the page, so that looking elsewhere loses nothing. */

import { SvelteMap } from "svelte/reactivity";

import { Problem, requestJson } from "../../../net/api";

export interface TextDraft {
  /** What is saved, and the tag of it. */
  saved: string;
  etag: string;
  text: string;
  /** What somebody else saved meanwhile. */
  theirs: { text: string; etag: string } | null;
}

/** One text with its draft: read, written if nobody was faster, and compared if somebody was. */
class TextDrafts {
  #drafts = new SvelteMap<string, TextDraft>();
  /** Those that are being saved. */
  #saving = new Set<string>();

  getDraft(name: string): TextDraft | undefined {
    return this.#drafts.get(name);
  }

  isUnsaved(name: string): boolean {
    const draft = this.#drafts.get(name);
    return draft !== undefined && draft.text !== draft.saved;
  }

  /** Reads it anew. What is being written stays; it is compared when it is saved. */
  async load(name: string, path: string): Promise<void> {
    const found = await requestJson<{ text: string }>(path);
    if (!this.isUnsaved(name)) this.setSaved(name, found.value.text, found.etag);
  }

  /** Reads it, where somebody may have changed it: shown at once, or beside what is being written. */
  async checkForChanges(name: string, path: string): Promise<void> {
    if (this.#saving.has(name)) return;
    const found = await requestJson<{ text: string }>(path);
    const draft = this.#drafts.get(name);
    if (this.#saving.has(name) || draft?.etag === found.etag) return;
    if (!this.isUnsaved(name)) this.setSaved(name, found.value.text, found.etag);
    else this.#changeDraft(name, { theirs: { text: found.value.text, etag: found.etag } });
  }

  setSaved(name: string, text: string, etag: string): void {
    this.#drafts.set(name, { saved: text, etag, text, theirs: null });
  }

  setText(name: string, text: string): void {
    this.#changeDraft(name, { text });
  }

  reset(name: string): void {
    const draft = this.#drafts.get(name);
    if (draft) this.#changeDraft(name, { text: draft.saved, theirs: null });
  }

  /** Saves it; undefined where somebody was faster, and `theirs` is what they wrote. */
  async save<T>(name: string, path: string): Promise<T | undefined> {
    const draft = this.#drafts.get(name);
    if (!draft) return undefined;
    this.#saving.add(name);
    try {
      const made = await requestJson<T>(path, { method: "PUT", body: { text: draft.text }, ifMatch: draft.etag });
      this.#changeDraft(name, { saved: draft.text, etag: made.etag, theirs: null });
      return made.value;
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 412) throw error;
      const found = await requestJson<{ text: string }>(path);
      this.#changeDraft(name, { theirs: { text: found.value.text, etag: found.etag } });
      return undefined;
    } finally {
      this.#saving.delete(name);
    }
  }

  /** Goes on from theirs: with one's own text, or with theirs. */
  resolveConflict(name: string, keep: "mine" | "theirs"): void {
    const draft = this.#drafts.get(name);
    if (!draft?.theirs) return;
    const { text, etag } = draft.theirs;
    this.#drafts.set(name, { saved: text, etag, text: keep === "mine" ? draft.text : text, theirs: null });
  }

  #changeDraft(name: string, what: Partial<TextDraft>): void {
    const draft = this.#drafts.get(name);
    if (draft) this.#drafts.set(name, { ...draft, ...what });
  }
}

export const textDrafts = new TextDrafts();
