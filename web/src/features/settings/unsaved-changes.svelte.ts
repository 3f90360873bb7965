/** Which features hold changes that are not saved: each says so itself, once its code is loaded. */

import { SvelteMap } from "svelte/reactivity";

class UnsavedChanges {
  #checks = new SvelteMap<string, () => boolean>();

  /** From now on `check` tells whether the feature has any. */
  watch(feature: string, check: () => boolean): void {
    this.#checks.set(feature, check);
  }

  has(feature: string): boolean {
    return this.#checks.get(feature)?.() ?? false;
  }
}

export const unsavedChanges = new UnsavedChanges();
