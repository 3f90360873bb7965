/** Where words stand in conversations: asked for once somebody pauses in typing. */

import { getJson, Problem } from "../../net/api";
import { app } from "../../state/app-state.svelte";
import type { ConversationMatch } from "./session-lines";

const TYPING_PAUSE_MS = 250;
const MIN_QUERY_LENGTH = 2;

export class ConversationSearch {
  matches = $state.raw<ConversationMatch[]>([]);
  busy = $state(false);
  /** What was searched for when the list was made. */
  query = $state("");
  #stop: AbortController | null = null;
  #timer = 0;

  search(text: string): void {
    this.#stop?.abort();
    clearTimeout(this.#timer);
    const wanted = text.trim();
    if (wanted.length < MIN_QUERY_LENGTH) {
      this.matches = [];
      this.query = "";
      this.busy = false;
      return;
    }
    this.busy = true;
    this.#timer = window.setTimeout(() => void this.#fetchMatches(wanted), TYPING_PAUSE_MS);
  }

  async #fetchMatches(text: string): Promise<void> {
    const stop = (this.#stop = new AbortController());
    try {
      const found = await getJson<{ items: ConversationMatch[] }>(`sessions/search?limit=50&q=${encodeURIComponent(text.slice(0, 500))}`, stop.signal);
      if (stop.signal.aborted) return;
      this.matches = found.items;
      this.query = text;
      this.busy = false;
    } catch (error) {
      if (stop.signal.aborted) return;
      this.busy = false;
      this.matches = [];
      // Words that cannot be searched for find nothing.
      if (error instanceof Problem && error.status === 400) this.query = text;
      else app.showProblem(error);
    }
  }
}
