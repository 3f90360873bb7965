/** What the palette can find and do, from where one is. */

import { tick } from "svelte";

import * as acts from "../../net/session-api";
import { CHAT_PAGE, listFeatures, showsSession } from "../../features/registry";
import { pathOf, router } from "../../state/router.svelte";
import { app, type Row } from "../../state/app-state.svelte";
import { ago } from "../../text/format";
import { words } from "../../words";
import type { Sources } from "./palette-choices";
import { archive, discard, pin } from "../sidebar/session-actions";
import { type Action, shell } from "../../state/shell-state.svelte";
import { theme, THEMES } from "../../state/theme.svelte";

/** Brings the focus to the search of the sidebar. */
export async function search(text?: string): Promise<void> {
  if (text !== undefined) shell.search = text;
  if (matchMedia("(max-width: 50rem)").matches) shell.drawer = true;
  else if (shell.folded) shell.fold();
  await tick();
  document.getElementById("search")?.focus();
}

function ofSession(row: Row): Action[] {
  const { page } = router.place;
  const busy = !["idle", "paused", "awaiting_user"].includes(row.state) || row.asked > 0;
  const found: Action[] = [];
  if (page === CHAT_PAGE.route) found.push(...listFeatures("session").map(({ route, about = "" }) => ({ name: about, run: () => router.go(pathOf(route, row.id)) })));
  else found.push({ name: words.palette.chat, run: () => router.go(pathOf(CHAT_PAGE.route, row.id)) });
  if (!app.may("chat") || row.deleted) return found;
  if (busy) found.push({ name: words.palette.stop, run: () => app.attempt(() => acts.act(row.id, "cancel")) });
  found.push(
    { name: row.pinned ? words.sidebar.unpin : words.sidebar.pin, run: () => pin(row) },
    { name: row.archived ? words.sidebar.unarchive : words.sidebar.archive, run: () => archive(row, !row.archived) },
    { name: words.sidebar.remove, run: () => discard(row) },
  );
  return found;
}

export function sources(): Sources {
  const { page, rest } = router.place;
  const row = showsSession(page) ? app.rows.get(rest[0] ?? "") : undefined;
  return {
    here: [...(row ? ofSession(row) : []), ...shell.actions],
    acts: [
      { name: words.keys.acts.new, keys: "n", run: () => router.go(pathOf("chat")) },
      { name: words.keys.acts.search, keys: "s", run: () => search() },
      { name: words.keys.acts.help, keys: "?", run: () => (shell.help = true) },
      ...THEMES.filter((name) => name !== theme.value).map((name) => ({
        name: `${words.shell.theme}: ${words.shell.themes[name]}`,
        run: () => theme.set(name),
      })),
      { name: words.login.out, run: () => app.attempt(() => app.logout()) },
    ],
    pages: [CHAT_PAGE, ...listFeatures("navigation")].map(({ title, route }) => ({
      name: words.palette.goTo(title),
      run: () => router.go(pathOf(route)),
    })),
    sessions: [...app.rows.values()].filter((one) => !one.deleted).sort((a, b) => b.updated - a.updated),
    open: (one) => router.go(pathOf("chat", one.id)),
    more: (one) => (one.asked ? (words.state["awaiting_user"] ?? "") : ago(one.updated)),
    inside: (text) => search(text),
  };
}
