/** A session as the rows of its page: one for each thing that was said or done, so that a long turn is many. */

import type { Session, Turn, TurnItem } from "../../log/session";
import { repeatsOutcome } from "./turn-outcome";

export type ChatRow =
  | { kind: "item"; key: string; item: TurnItem; turn: Turn }
  /** What is being said just now. */
  | { kind: "live"; key: string; turn: Turn }
  /** What came of a turn. */
  | { kind: "end"; key: string; turn: Turn };

const rowCache = new WeakMap<Turn, ChatRow[]>();

function buildTurnRows(turn: Turn): ChatRow[] {
  const made = rowCache.get(turn);
  if (made) return made;
  const rows: ChatRow[] = turn.items.flatMap((item, index) => {
    // What failed an answer and a turn has one number: both are shown.
    const key = item.seq ? `${item.seq}${item.kind === "note" ? "n" : ""}` : `${turn.key}-${index}`;
    return repeatsOutcome(turn, item) ? [] : [{ kind: "item" as const, key, item, turn }];
  });
  if (turn.id) rows.push({ kind: turn.outcome ? "end" : "live", key: `end-${turn.key}`, turn });
  rowCache.set(turn, rows);
  return rows;
}

export function buildRows(session: Session): ChatRow[] {
  return session.turns.flatMap(buildTurnRows);
}

/** The row that shows a fact: its own, or that of the last thing before it. */
export function findRowKey(list: readonly ChatRow[], seq: number): string {
  const own = list.find((row) => row.kind === "item" && row.item.seq === seq);
  return (own ?? list.findLast((row) => row.kind === "item" && row.item.seq <= seq && row.item.seq > 0))?.key ?? "";
}

/** What somebody said, the latest last, each once: what the arrow up goes through. */
export function listUserTexts(session: Session): string[] {
  const found: string[] = [];
  for (const turn of session.turns) {
    for (const item of turn.items) {
      if (item.kind === "user" && item.text && found.at(-1) !== item.text) found.push(item.text);
    }
  }
  return found;
}

/** The fact after which a copy has all up to, and with, this answer: where it was the last word, its whole turn. */
export function forkPointAfter(turn: Turn, item: TurnItem): number {
  const after = turn.items.slice(turn.items.indexOf(item) + 1);
  return turn.last && after.every((one) => one.kind === "note" || (one.kind === "user" && one.lost)) ? turn.last : item.seq;
}

/** How many turns the model would no longer see, if this one is run again. */
export function countLaterTurns(session: Session, turn: Turn): number {
  return session.turns.filter((one) => one.id && one.id !== turn.id && !one.rewound && one.first > turn.first).length;
}

/** Whether it is the model that one waits for, and not a call or a person. */
export function isModelThinking(session: Session, turn: Turn): boolean {
  if (!["processing", "scouting"].includes(session.state)) return false;
  const { text, reasoning, args } = session.live;
  if (text || reasoning || args.length) return false;
  return !turn.items.some((item) => item.kind === "tool" && ["called", "waiting", "asking", "running"].includes(item.call.state));
}

/** The fact after which a copy has all up to, and without, this message. */
export function forkPointBefore(turn: Turn, item: TurnItem): number {
  return Math.max(1, (turn.items[0] === item ? Math.min(turn.first, item.seq) : item.seq) - 1);
}
