/** The sessions as the lines of the sidebar: those that are looked for, in groups, the latest first. */

import type { SessionSummary } from "../../state/app-state.svelte";

/** Where a session lies: in use, put aside, or in the trash. */
export type SessionShelf = "open" | "archived" | "deleted";
export type SessionGroup = "pinned" | "today" | "earlier" | "found" | "inside";

/** A place in a conversation where the words stand. */
export interface ConversationMatch {
  session: string;
  title: string;
  seq: number;
  turn: string;
  ts: number;
  role: string;
  text: string;
}

export type SidebarLine =
  | { kind: "head"; key: string; group: SessionGroup; count: number }
  | { kind: "row"; key: string; row: SessionSummary }
  | { kind: "place"; key: string; place: ConversationMatch };

export function shelfOf(row: SessionSummary): SessionShelf {
  return row.deleted ? "deleted" : row.archived ? "archived" : "open";
}

/** Letters as people look for them: without case and marks. */
export function foldLetters(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** Whether every word of `search` stands in the title. */
export function matchesTitle(title: string, search: string): boolean {
  const known = foldLetters(title);
  return foldLetters(search)
    .split(/\s+/)
    .every((word) => known.includes(word));
}

export function startOfDay(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}

export function buildLines(rows: Iterable<SessionSummary>, shelf: SessionShelf, search: string, now: number): SidebarLine[] {
  const wanted = search.trim();
  const found = [...rows].filter((row) => shelfOf(row) === shelf && (!wanted || matchesTitle(row.title, wanted)));
  found.sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1));
  if (wanted) return buildGroup("found", found);
  if (shelf !== "open") return found.map(sessionLine);
  const today = startOfDay(now);
  return [
    ...buildGroup("pinned", found.filter((row) => row.pinned)),
    ...buildGroup("today", found.filter((row) => !row.pinned && row.updated >= today)),
    ...buildGroup("earlier", found.filter((row) => !row.pinned && row.updated < today)),
  ];
}

/** What was found in conversations, after the sessions whose titles fit. */
export function appendMatches(list: SidebarLine[], places: readonly ConversationMatch[]): SidebarLine[] {
  if (!places.length) return list;
  const head: SidebarLine = { kind: "head", key: "head inside", group: "inside", count: places.length };
  return [...list, head, ...places.map((place): SidebarLine => ({ kind: "place", key: `${place.session} ${place.seq}`, place }))];
}

function buildGroup(name: SessionGroup, rows: SessionSummary[]): SidebarLine[] {
  return rows.length ? [{ kind: "head", key: `head ${name}`, group: name, count: rows.length }, ...rows.map(sessionLine)] : [];
}

function sessionLine(row: SessionSummary): SidebarLine {
  return { kind: "row", key: row.id, row };
}

/** The session before or after one, as the sidebar has them; the first where none is open. */
export function findAdjacentSession(list: readonly SidebarLine[], current: string, step: 1 | -1): string {
  const ids = list.flatMap((one) => (one.kind === "row" ? [one.row.id] : []));
  const at = ids.indexOf(current);
  return (at < 0 ? ids[step > 0 ? 0 : ids.length - 1] : ids[at + step]) ?? "";
}
