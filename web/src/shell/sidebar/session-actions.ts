/** What the sidebar and the palette do with a session, told where it needs telling. */

import * as acts from "../../net/session-api";
import { at, post, remove } from "../../net/api";
import { app, type Row } from "../../state/app-state.svelte";
import { words } from "../../words";
import { titleOf } from "../../text/titles";
import { toasts } from "../../state/toasts.svelte";

/** Shows at once what was asked for; what the server says counts, and comes by the stream. */
async function changed(row: Row, now: Partial<Row>, work: () => Promise<unknown>): Promise<boolean> {
  const before = app.rows.get(row.id) ?? row;
  app.rows.set(row.id, { ...before, ...now });
  const done = await app.attempt(async () => {
    await work();
    return true;
  });
  const known = app.rows.get(row.id);
  if (!done && known) app.rows.set(row.id, { ...known, ...back(before, now) });
  return !!done;
}

function back(before: Row, now: Partial<Row>): Partial<Row> {
  return Object.fromEntries(Object.keys(now).map((name) => [name, before[name as keyof Row]]));
}

export async function pin(row: Row): Promise<void> {
  await changed(row, { pinned: !row.pinned }, () => acts.change(row.id, { pinned: !row.pinned }));
}

export async function rename(row: Row, title: string): Promise<void> {
  const wanted = title.trim();
  if (wanted && wanted !== row.title) await changed(row, { title: wanted }, () => acts.change(row.id, { title: wanted }));
}

export async function archive(row: Row, archived: boolean): Promise<void> {
  const done = await changed(row, { archived }, () => post(at`sessions/${row.id}` + (archived ? "/archive" : "/unarchive")));
  if (done && archived) toasts.say(words.sidebar.archivedDone, { act: { name: words.sidebar.undo, run: () => void archive({ ...row, archived }, false) } });
}

export async function discard(row: Row): Promise<void> {
  const title = titleOf(row.title);
  if (!(await changed(row, { deleted: true }, () => remove(at`sessions/${row.id}`)))) return;
  toasts.say(words.sidebar.removed(title), { ms: 15_000, act: { name: words.sidebar.undo, run: () => void restore({ ...row, deleted: true }) } });
}

export async function restore(row: Row): Promise<void> {
  await changed(row, { deleted: false }, () => acts.act(row.id, "restore"));
}

/** Nothing is left of it. */
export async function purge(row: Row): Promise<void> {
  const done = await app.attempt(async () => (await remove(at`sessions/${row.id}?purge=true`), true));
  if (!done) return;
  app.rows.delete(row.id);
  toasts.say(words.sidebar.purged(titleOf(row.title)));
}

/** What can be done with a session where it lies. */
export function choices(row: Row, renaming: () => void, purging: (row: Row) => void): { name: string; bad?: boolean; run: () => void }[] {
  const say = words.sidebar;
  if (row.deleted) {
    const back = { name: say.restore, run: () => void restore(row) };
    return app.may("admin") ? [back, { name: `${say.purge} …`, bad: true, run: () => purging(row) }] : [back];
  }
  const aside = row.archived
    ? { name: say.unarchive, run: () => void archive(row, false) }
    : { name: say.archive, run: () => void archive(row, true) };
  return [
    { name: row.pinned ? say.unpin : say.pin, run: () => void pin(row) },
    { name: say.rename, run: renaming },
    aside,
    { name: say.remove, bad: true, run: () => void discard(row) },
  ];
}
