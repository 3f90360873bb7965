/** Reads anew what the configuration says, whenever somebody has changed it. */

import { untrack } from "svelte";

import { app } from "../../state/app-state.svelte";

/** Does it now, and again after each change, wherever that came from. */
export function onConfigChange(work: () => unknown): void {
  $effect(() => {
    void app.configChanges;
    untrack(work);
  });
}
