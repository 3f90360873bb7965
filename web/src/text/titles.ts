/** What the browser's tab says: where one is, and how many sessions want to be looked at. */

import type { SessionSummary } from "../state/app-state.svelte";
import { words } from "../words";
import { escapeToLine } from "./escape-invisible";

/** What a session is called: one line, with nothing hidden in it. */
export function sessionTitle(title: string): string {
  return escapeToLine(title) || words.sidebar.untitled;
}

export function countUnseen(rows: Iterable<SessionSummary>): number {
  let count = 0;
  for (const row of rows) if (!row.deleted && !row.archived && (row.asked || row.unread)) count++;
  return count;
}

export function tabTitle(place: string, name: string, count: number): string {
  return `${count ? `(${count}) ` : ""}${place && place !== name ? `${place} · ` : ""}${name}`;
}
