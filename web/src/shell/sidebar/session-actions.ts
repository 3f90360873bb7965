/** What the sidebar and the palette do with a session, told where it needs telling. */

import { apiPath, postJson, sendDelete } from "../../net/api";
import * as sessionApi from "../../net/session-api";
import { app, type SessionSummary } from "../../state/app-state.svelte";
import { toasts } from "../../state/toasts.svelte";
import { sessionTitle } from "../../text/titles";
import { words } from "../../words";

/** Shows at once what was asked for; what the server says counts, and comes by the stream. */
async function changeAtOnce(row: SessionSummary, now: Partial<SessionSummary>, work: () => Promise<unknown>): Promise<boolean> {
  const before = app.sessions.get(row.id) ?? row;
  app.sessions.set(row.id, { ...before, ...now });
  const done = await app.attempt(async () => {
    await work();
    return true;
  });
  const known = app.sessions.get(row.id);
  if (!done && known) app.sessions.set(row.id, { ...known, ...valuesBefore(before, now) });
  return !!done;
}

function valuesBefore(before: SessionSummary, now: Partial<SessionSummary>): Partial<SessionSummary> {
  return Object.fromEntries(Object.keys(now).map((name) => [name, before[name as keyof SessionSummary]]));
}

export async function togglePin(row: SessionSummary): Promise<void> {
  await changeAtOnce(row, { pinned: !row.pinned }, () => sessionApi.updateSession(row.id, { pinned: !row.pinned }));
}

export async function renameSession(row: SessionSummary, title: string): Promise<void> {
  const wanted = title.trim();
  if (wanted && wanted !== row.title) await changeAtOnce(row, { title: wanted }, () => sessionApi.updateSession(row.id, { title: wanted }));
}

export async function archiveSession(row: SessionSummary, archived: boolean): Promise<void> {
  const done = await changeAtOnce(row, { archived }, () => postJson(apiPath`sessions/${row.id}` + (archived ? "/archive" : "/unarchive")));
  if (done && archived) toasts.show(words.sidebar.archivedDone, { act: { name: words.sidebar.undo, run: () => void archiveSession({ ...row, archived }, false) } });
}

export async function trashSession(row: SessionSummary): Promise<void> {
  const title = sessionTitle(row.title);
  if (!(await changeAtOnce(row, { deleted: true }, () => sendDelete(apiPath`sessions/${row.id}`)))) return;
  toasts.show(words.sidebar.removed(title), { ms: 15_000, act: { name: words.sidebar.undo, run: () => void restoreSession({ ...row, deleted: true }) } });
}

export async function restoreSession(row: SessionSummary): Promise<void> {
  await changeAtOnce(row, { deleted: false }, () => sessionApi.controlSession(row.id, "restore"));
}

/** Nothing is left of it. */
export async function purgeSession(row: SessionSummary): Promise<void> {
  const done = await app.attempt(async () => (await sendDelete(apiPath`sessions/${row.id}?purge=true`), true));
  if (!done) return;
  app.sessions.delete(row.id);
  toasts.show(words.sidebar.purged(sessionTitle(row.title)));
}

/** What can be done with a session where it lies. */
export function listSessionActions(row: SessionSummary, renaming: () => void, purging: (row: SessionSummary) => void): { name: string; bad?: boolean; run: () => void }[] {
  const say = words.sidebar;
  if (row.deleted) {
    const back = { name: say.restore, run: () => void restoreSession(row) };
    return app.hasScope("admin") ? [back, { name: `${say.purge} …`, bad: true, run: () => purging(row) }] : [back];
  }
  const aside = row.archived
    ? { name: say.unarchive, run: () => void archiveSession(row, false) }
    : { name: say.archive, run: () => void archiveSession(row, true) };
  return [
    { name: row.pinned ? say.unpin : say.pin, run: () => void togglePin(row) },
    { name: say.rename, run: renaming },
    aside,
    { name: say.remove, bad: true, run: () => void trashSession(row) },
  ];
}
