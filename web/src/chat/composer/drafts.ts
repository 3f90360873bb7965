/** What was begun to be written, kept for each session while the tab is open; and the way back through what was said. */

export interface KeyValueStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export class DraftStore {
  // Where nothing may be kept in the browser, memory has to do.
  #memory = new Map<string, string>();

  constructor(private readonly storage: () => KeyValueStore = () => sessionStorage) {}

  getDraft(session: string): string {
    try {
      return this.storage().getItem(`draft:${session}`) ?? this.#memory.get(session) ?? "";
    } catch {
      return this.#memory.get(session) ?? "";
    }
  }

  setDraft(session: string, text: string): void {
    if (text) this.#memory.set(session, text);
    else this.#memory.delete(session);
    try {
      if (text) this.storage().setItem(`draft:${session}`, text);
      else this.storage().removeItem(`draft:${session}`);
    } catch {
      // It is in memory.
    }
  }
}

export const drafts = new DraftStore();

/** Goes back and forth through what was said; `at` is -1 where one writes something new. */
export class MessageHistory {
  at = -1;

  /** What stands there one further back (`by` 1) or forth (-1); null where the box stays as it is. */
  stepThrough(said: readonly string[], by: 1 | -1): string | null {
    const next = this.at + by;
    if (next < -1 || next >= said.length) return null;
    this.at = next;
    return next < 0 ? "" : (said[said.length - 1 - next] ?? "");
  }

  reset(): void {
    this.at = -1;
  }
}
