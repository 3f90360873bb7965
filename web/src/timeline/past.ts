/** A session as it was at one of its facts. */

import type { SylphEvent } from "../log/events";
import { Fold } from "../log/fold";
import type { Item, Session } from "../log/session";

export interface Past {
  session: Session;
  /** The end of the conversation, as far as it is shown. */
  items: Item[];
  /** How much stands before that. */
  before: number;
}

export function past(id: string, facts: readonly SylphEvent[], upto: number, most = 40): Past {
  const fold = new Fold(id, facts[0]?.seq ?? 1);
  fold.take(facts.filter((fact) => fact.seq <= upto));
  const all = fold.session.turns.flatMap((turn) => turn.items);
  return { session: fold.session, items: all.slice(-most), before: Math.max(0, all.length - most) };
}

/** The index of the last fact that had happened at a time. */
export function factAt(facts: readonly SylphEvent[], ts: number): number {
  const after = facts.findIndex((fact) => fact.ts > ts);
  return after < 0 ? facts.length - 1 : Math.max(0, after - 1);
}
