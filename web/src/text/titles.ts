/** What the browser's tab says: where one is, and how many sessions want to be looked at. */

import type { Row } from "../state/app-state.svelte";
import { line } from "./escape-invisible";
import { words } from "../words";

/** What a session is called: one line, with nothing hidden in it. */
export function titleOf(title: string): string {
  return line(title) || words.sidebar.untitled;
}

export function wanting(rows: Iterable<Row>): number {
  let count = 0;
  for (const row of rows) if (!row.deleted && !row.archived && (row.asked || row.unread)) count++;
  return count;
}

export function titled(place: string, name: string, count: number): string {
  return `${count ? `(${count}) ` : ""}${place && place !== name ? `${place} · ` : ""}${name}`;
}
