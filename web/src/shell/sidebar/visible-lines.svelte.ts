/** The lines of the sidebar as they are now, for all who go by them. */

import { app } from "../../state/app-state.svelte";
import { shell } from "../../state/shell-state.svelte";
import { buildLines, type SidebarLine } from "./session-lines";

class VisibleLines {
  lines: SidebarLine[] = $derived(buildLines(app.sessions.values(), shell.shelf, shell.search, Date.now()));
}

export const visibleLines = new VisibleLines();
