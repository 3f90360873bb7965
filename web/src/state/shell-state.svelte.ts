/** What is open of the app's frame, and what the page that is open offers to do. */

import { untrack } from "svelte";

import type { Shelf } from "../shell/sidebar/session-lines";
import { keep, kept } from "./browser-storage";

/** Something that can be done, for the palette. */
export interface Action {
  name: string;
  /** Keys that do the same. */
  keys?: string;
  run: () => unknown;
}

class Shell {
  palette = $state(false);
  help = $state(false);
  /** Whether the sidebar is open where it is a drawer. */
  drawer = $state(false);
  /** Whether the sidebar is folded away where there is room for it. */
  folded = $state(kept("folded") === "yes");
  shelf = $state<Shelf>("open");
  search = $state("");
  /** Whether single letters do something. */
  letters = $state(kept("letters") !== "no");
  /** What the keys for questions do on the page that is open; it tells whether they did something. */
  answers: ((what: "yes" | "no" | "question") => boolean) | null = null;
  #offers = $state.raw<(() => Action[])[]>([]);

  get actions(): Action[] {
    return this.#offers.flatMap((offer) => offer());
  }

  /** A page offers what can be done on it; what it returns takes it back. For use in an `$effect`. */
  offer(actions: () => Action[]): () => void {
    untrack(() => (this.#offers = [...this.#offers, actions]));
    return () => untrack(() => (this.#offers = this.#offers.filter((one) => one !== actions)));
  }

  fold(): void {
    this.folded = !this.folded;
    keep("folded", this.folded ? "yes" : "");
  }

  useLetters(on: boolean): void {
    this.letters = on;
    keep("letters", on ? "" : "no");
  }
}

export const shell = new Shell();
