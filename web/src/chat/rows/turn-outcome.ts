/** How a turn ended, in plain words; and what of its troubles is told already. */

import type { ErrorReport } from "../../log/events";
import type { Turn, TurnItem } from "../../log/session";
import { words } from "../../words";

export interface TurnOutcome {
  text: string;
  tone: "good" | "plain" | "bad";
  /** What went wrong, where nothing above it has told that. */
  trouble: ErrorReport | null;
  /** Whether it is worth another try. */
  again: boolean;
}

/** What a stop without words is recorded with. */
const NO_REASON = "interrupted";

export function describeOutcome(turn: Turn): TurnOutcome {
  const { outcome, trouble } = turn;
  const say = words.turn.outcome;
  const text = say[outcome] ?? outcome;
  if (outcome === "finished") return { text, tone: "good", trouble, again: false };
  if (trouble?.kind === "cancelled") {
    const why = trouble.message && trouble.message !== NO_REASON ? trouble.message : "";
    return { text: words.turn.stopped(why), tone: "plain", trouble: null, again: true };
  }
  if (trouble?.kind === "dropped") return { text: words.turn.dropped, tone: "plain", trouble: null, again: true };
  if (trouble?.kind === "forked") return { text: words.turn.forked, tone: "plain", trouble: null, again: false };
  const told = outcome === "budget" && turn.items.some((item) => item.kind === "note" && item.about === "budget.stopped");
  return { text, tone: outcome === "failed" ? "bad" : "plain", trouble: told ? null : trouble, again: true };
}

/** Whether the end of the turn says the same as this note. */
export function repeatsOutcome(turn: Turn, item: TurnItem): boolean {
  if (item.kind !== "note" || !turn.trouble) return false;
  const fact = item.fact;
  const last = fact.type === "model.failed" ? (fact.data.retry_ms ?? null) === null : fact.type === "model.fell_back" && !fact.data.to;
  return last && (fact.type === "model.failed" || fact.type === "model.fell_back") && fact.data.trouble.kind === turn.trouble.kind;
}
