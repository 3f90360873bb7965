/** What the palette can find and do, from where one is. */

import { tick } from "svelte";

import { CHAT_PAGE, listFeatures, showsSession } from "../../features/registry";
import * as sessionApi from "../../net/session-api";
import { app, type SessionSummary } from "../../state/app-state.svelte";
import { buildPath, router } from "../../state/router.svelte";
import { type PaletteAction, shell } from "../../state/shell-state.svelte";
import { theme, THEMES } from "../../state/theme.svelte";
import { formatTimeAgo } from "../../text/format";
import { words } from "../../words";
import { archiveSession, togglePin, trashSession } from "../sidebar/session-actions";
import type { PaletteSources } from "./palette-choices";

/** Brings the focus to the search of the sidebar. */
export async function focusSearch(text?: string): Promise<void> {
  if (text !== undefined) shell.search = text;
  if (matchMedia("(max-width: 50rem)").matches) shell.drawerOpen = true;
  else if (shell.sidebarFolded) shell.toggleSidebar();
  await tick();
  document.getElementById("search")?.focus();
}

function sessionPaletteActions(row: SessionSummary): PaletteAction[] {
  const { page } = router.route;
  const busy = !["idle", "paused", "awaiting_user"].includes(row.state) || row.asked > 0;
  const found: PaletteAction[] = [];
  if (page === CHAT_PAGE.route) found.push(...listFeatures("session").map(({ route, about = "" }) => ({ name: about, run: () => router.go(buildPath(route, row.id)) })));
  else found.push({ name: words.palette.chat, run: () => router.go(buildPath(CHAT_PAGE.route, row.id)) });
  if (!app.hasScope("chat") || row.deleted) return found;
  if (busy) found.push({ name: words.palette.stop, run: () => app.attempt(() => sessionApi.controlSession(row.id, "cancel")) });
  found.push(
    { name: row.pinned ? words.sidebar.unpin : words.sidebar.pin, run: () => togglePin(row) },
    { name: row.archived ? words.sidebar.unarchive : words.sidebar.archive, run: () => archiveSession(row, !row.archived) },
    { name: words.sidebar.remove, run: () => trashSession(row) },
  );
  return found;
}

export function collectPaletteSources(): PaletteSources {
  const { page, rest } = router.route;
  const row = showsSession(page) ? app.sessions.get(rest[0] ?? "") : undefined;
  return {
    here: [...(row ? sessionPaletteActions(row) : []), ...shell.pageActions],
    acts: [
      { name: words.keys.acts.new, keys: "n", run: () => router.go(buildPath("chat")) },
      { name: words.keys.acts.search, keys: "s", run: () => focusSearch() },
      { name: words.keys.acts.help, keys: "?", run: () => (shell.helpOpen = true) },
      ...THEMES.filter((name) => name !== theme.value).map((name) => ({
        name: `${words.shell.theme}: ${words.shell.themes[name]}`,
        run: () => theme.set(name),
      })),
      { name: words.login.out, run: () => app.attempt(() => app.logOut()) },
    ],
    pages: [CHAT_PAGE, ...listFeatures("navigation")].map(({ title, route }) => ({
      name: words.palette.goTo(title),
      run: () => router.go(buildPath(route)),
    })),
    sessions: [...app.sessions.values()].filter((one) => !one.deleted).sort((a, b) => b.updated - a.updated),
    open: (one) => router.go(buildPath("chat", one.id)),
    more: (one) => (one.asked ? (words.state["awaiting_user"] ?? "") : formatTimeAgo(one.updated)),
    inside: (text) => focusSearch(text),
  };
}
