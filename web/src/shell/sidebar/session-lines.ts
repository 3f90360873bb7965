/** The sessions as the lines of the sidebar: those that are looked for, in groups, the latest first. */

import type { Row } from "../../state/app-state.svelte";

/** Where a session lies: in use, put aside, or in the trash. */
export type Shelf = "open" | "archived" | "deleted";
export type Group = "pinned" | "today" | "earlier" | "found" | "inside";

/** A place in a conversation where the words stand. */
export interface Place {
  session: string;
  title: string;
  seq: number;
  turn: string;
  ts: number;
  role: string;
  text: string;
}

export type Line =
  | { kind: "head"; key: string; group: Group; count: number }
  | { kind: "row"; key: string; row: Row }
  | { kind: "place"; key: string; place: Place };

export function shelfOf(row: Row): Shelf {
  return row.deleted ? "deleted" : row.archived ? "archived" : "open";
}

/** Letters as people look for them: without case and marks. */
export function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** Whether every word of `search` stands in the title. */
export function fits(title: string, search: string): boolean {
  const known = plain(title);
  return plain(search)
    .split(/\s+/)
    .every((word) => known.includes(word));
}

export function midnight(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}

export function lines(rows: Iterable<Row>, shelf: Shelf, search: string, now: number): Line[] {
  const wanted = search.trim();
  const found = [...rows].filter((row) => shelfOf(row) === shelf && (!wanted || fits(row.title, wanted)));
  found.sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1));
  if (wanted) return group("found", found);
  if (shelf !== "open") return found.map(line);
  const today = midnight(now);
  return [
    ...group("pinned", found.filter((row) => row.pinned)),
    ...group("today", found.filter((row) => !row.pinned && row.updated >= today)),
    ...group("earlier", found.filter((row) => !row.pinned && row.updated < today)),
  ];
}

/** What was found in conversations, after the sessions whose titles fit. */
export function withPlaces(list: Line[], places: readonly Place[]): Line[] {
  if (!places.length) return list;
  const head: Line = { kind: "head", key: "head inside", group: "inside", count: places.length };
  return [...list, head, ...places.map((place): Line => ({ kind: "place", key: `${place.session} ${place.seq}`, place }))];
}

function group(name: Group, rows: Row[]): Line[] {
  return rows.length ? [{ kind: "head", key: `head ${name}`, group: name, count: rows.length }, ...rows.map(line)] : [];
}

function line(row: Row): Line {
  return { kind: "row", key: row.id, row };
}

/** The session before or after one, as the sidebar has them; the first where none is open. */
export function beside(list: readonly Line[], current: string, step: 1 | -1): string {
  const ids = list.flatMap((one) => (one.kind === "row" ? [one.row.id] : []));
  const at = ids.indexOf(current);
  return (at < 0 ? ids[step > 0 ? 0 : ids.length - 1] : ids[at + step]) ?? "";
}
