/** What is open of the app's frame, and what the page that is open offers to do. */

import { untrack } from "svelte";

import type { SessionShelf } from "../shell/sidebar/session-lines";
import { readPreference, savePreference } from "./browser-storage";

/** Something that can be done, for the palette. */
export interface PaletteAction {
  name: string;
  /** Keys that do the same. */
  keys?: string;
  run: () => unknown;
}

class ShellState {
  paletteOpen = $state(false);
  helpOpen = $state(false);
  /** Whether the sidebar is open where it is a drawer. */
  drawerOpen = $state(false);
  /** Whether the sidebar is folded away where there is room for it. */
  sidebarFolded = $state(readPreference("folded") === "yes");
  shelf = $state<SessionShelf>("open");
  search = $state("");
  /** Whether single letters do something. */
  letterKeys = $state(readPreference("letters") !== "no");
  /** What the keys for questions do on the page that is open; it tells whether they did something. */
  answerByKey: ((what: "yes" | "no" | "question") => boolean) | null = null;
  #offers = $state.raw<(() => PaletteAction[])[]>([]);

  get pageActions(): PaletteAction[] {
    return this.#offers.flatMap((offer) => offer());
  }

  /** A page offers what can be done on it; what it returns takes it back. For use in an `$effect`. */
  offerActions(actions: () => PaletteAction[]): () => void {
    untrack(() => (this.#offers = [...this.#offers, actions]));
    return () => untrack(() => (this.#offers = this.#offers.filter((one) => one !== actions)));
  }

  toggleSidebar(): void {
    this.sidebarFolded = !this.sidebarFolded;
    savePreference("folded", this.sidebarFolded ? "yes" : "");
  }

  setLetterKeys(on: boolean): void {
    this.letterKeys = on;
    savePreference("letters", on ? "" : "no");
  }
}

export const shell = new ShellState();
