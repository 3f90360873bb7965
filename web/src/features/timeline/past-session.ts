/** A session as it was at one of its facts. */

import type { SylphEvent } from "../../log/events";
import type { Session, TurnItem } from "../../log/session";
import { SessionFold } from "../../log/session-fold";

export interface PastSession {
  session: Session;
  /** Micro-dollars; null where that cannot be known. */
  cost: number | null;
  /** The end of the conversation, as far as it is shown. */
  items: TurnItem[];
  /** How much stands before that. */
  before: number;
}

/** `now` is the session as it is: it knows what the facts that are not loaded would tell. */
export function foldPastSession(id: string, facts: readonly SylphEvent[], upto: number, now: Session, most = 40): PastSession {
  const fold = new SessionFold(id, facts[0]?.seq ?? 1);
  fold.applyEvents(facts.filter((fact) => fact.seq <= upto));
  const session = fold.session;
  const all = session.turns.flatMap((turn) => turn.items);
  const whole = (facts[0]?.seq ?? 1) <= 1;
  if (!whole) Object.assign(session, settingsAt(facts, upto, now));
  const cost = whole ? session.cost : costAt(facts, upto, now.cost);
  return { session, cost, items: all.slice(-most), before: Math.max(0, all.length - most) };
}

function settingsAt(facts: readonly SylphEvent[], upto: number, now: Session): Partial<Session> {
  return {
    model: valueAt(facts, upto, now.model, (fact) => (fact.type === "session.model" ? [fact.data.was, fact.data.model] : null)),
    mode: valueAt(facts, upto, now.mode, (fact) => (fact.type === "session.mode" ? [fact.data.was, fact.data.mode] : null)),
    state: valueAt(facts, upto, now.state, (fact) => (fact.type === "state.changed" ? [fact.data.was, fact.data.to] : null)),
  };
}

/** What was so at a fact: as the last change before it says, or the next one of what was before it, or as it is now. */
function valueAt<T>(facts: readonly SylphEvent[], upto: number, now: T, change: (fact: SylphEvent) => [T, T] | null): T {
  let found: T | undefined;
  for (const fact of facts) {
    const made = change(fact);
    if (!made) continue;
    if (fact.seq > upto) return found ?? made[0];
    found = made[1];
  }
  return found ?? now;
}

/** What was spent by then: all of it without what came later. A copy begins to count anew. */
function costAt(facts: readonly SylphEvent[], upto: number, now: number): number | null {
  let cost = now;
  for (const fact of facts) {
    if (fact.seq <= upto) continue;
    if (fact.type === "session.forked") return null;
    if (fact.type === "model.responded" || fact.type === "model.failed") cost -= fact.data.cost ?? 0;
  }
  return Math.max(0, cost);
}

/** The index of the last fact that had happened at a time. */
export function findFactIndex(facts: readonly SylphEvent[], ts: number): number {
  const after = facts.findIndex((fact) => fact.ts > ts);
  return after < 0 ? facts.length - 1 : Math.max(0, after - 1);
}
