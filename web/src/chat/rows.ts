/** A session as the rows of its page: one for each thing that was said or done, so that a long turn is many. */

import type { Item, Session, Turn } from "../log/session";

export type Row =
  | { kind: "item"; key: string; item: Item; turn: Turn }
  /** What is being said just now. */
  | { kind: "live"; key: string; turn: Turn }
  /** What came of a turn. */
  | { kind: "end"; key: string; turn: Turn };

const known = new WeakMap<Turn, Row[]>();

function rowsOf(turn: Turn): Row[] {
  const made = known.get(turn);
  if (made) return made;
  const rows: Row[] = turn.items.map((item, index) => ({
    kind: "item",
    key: item.seq ? `${item.seq}` : `${turn.key}-${index}`,
    item,
    turn,
  }));
  if (turn.id) rows.push({ kind: turn.outcome ? "end" : "live", key: `end-${turn.key}`, turn });
  known.set(turn, rows);
  return rows;
}

export function rows(session: Session): Row[] {
  return session.turns.flatMap(rowsOf);
}

/** The row that shows a fact: its own, or that of the last thing before it. */
export function rowOf(list: readonly Row[], seq: number): string {
  const own = list.find((row) => row.kind === "item" && row.item.seq === seq);
  return (own ?? list.findLast((row) => row.kind === "item" && row.item.seq <= seq && row.item.seq > 0))?.key ?? "";
}

/** What somebody said, the latest last, each once: what the arrow up goes through. */
export function said(session: Session): string[] {
  const found: string[] = [];
  for (const turn of session.turns) {
    for (const item of turn.items) {
      if (item.kind === "said" && item.text && found.at(-1) !== item.text) found.push(item.text);
    }
  }
  return found;
}

/** The fact after which a copy has all up to, and without, this message. */
export function before(turn: Turn, item: Item): number {
  return Math.max(1, (turn.items[0] === item ? Math.min(turn.first, item.seq) : item.seq) - 1);
}
