/** What the palette can find and do, from where one is. */

import { tick } from "svelte";

import * as acts from "../chat/acts";
import { pathOf, router } from "../router.svelte";
import { app, type Row } from "../state/app.svelte";
import { ago, words } from "../words";
import { THERE } from "./pages";
import type { Sources } from "./palette";
import { archive, discard, pin } from "./sessions";
import { type Action, shell } from "./shell.svelte";
import { theme, THEMES } from "./theme.svelte";

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
  if (page === "chat") found.push({ name: words.palette.timeline, run: () => router.go(pathOf("timeline", row.id)) });
  else found.push({ name: words.palette.chat, run: () => router.go(pathOf("chat", row.id)) });
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
  const row = ["chat", "timeline"].includes(page) ? app.rows.get(rest[0] ?? "") : undefined;
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
    pages: THERE.filter((name) => name !== "timeline").map((name) => ({
      name: words.palette.goTo(words.nav[name]),
      run: () => router.go(pathOf(name)),
    })),
    sessions: [...app.rows.values()].filter((one) => !one.deleted).sort((a, b) => b.updated - a.updated),
    open: (one) => router.go(pathOf("chat", one.id)),
    more: (one) => (one.asked ? (words.state["awaiting_user"] ?? "") : ago(one.updated)),
    inside: (text) => search(text),
  };
}
