/** Where words stand in conversations: asked for once somebody pauses in typing. */

import { get, Problem } from "../../net/api";
import { app } from "../../state/app-state.svelte";
import type { Place } from "./session-lines";

const PAUSE = 250;
const SHORTEST = 2;

export class Places {
  list = $state.raw<Place[]>([]);
  busy = $state(false);
  /** What was searched for when the list was made. */
  of = $state("");
  #stop: AbortController | null = null;
  #timer = 0;

  search(text: string): void {
    this.#stop?.abort();
    clearTimeout(this.#timer);
    const wanted = text.trim();
    if (wanted.length < SHORTEST) {
      this.list = [];
      this.of = "";
      this.busy = false;
      return;
    }
    this.busy = true;
    this.#timer = window.setTimeout(() => void this.#ask(wanted), PAUSE);
  }

  async #ask(text: string): Promise<void> {
    const stop = (this.#stop = new AbortController());
    try {
      const found = await get<{ items: Place[] }>(`sessions/search?limit=50&q=${encodeURIComponent(text.slice(0, 500))}`, stop.signal);
      if (stop.signal.aborted) return;
      this.list = found.items;
      this.of = text;
      this.busy = false;
    } catch (error) {
      if (stop.signal.aborted) return;
      this.busy = false;
      this.list = [];
      // Words that cannot be searched for find nothing.
      if (error instanceof Problem && error.status === 400) this.of = text;
      else app.fail(error);
    }
  }
}
