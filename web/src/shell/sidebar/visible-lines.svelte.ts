/** The lines of the sidebar as they are now, for all who go by them. */

import { app } from "../../state/app-state.svelte";
import { type Line, lines } from "./session-lines";
import { shell } from "../../state/shell-state.svelte";

class Listed {
  lines: Line[] = $derived(lines(app.rows.values(), shell.shelf, shell.search, Date.now()));
}

export const listed = new Listed();
