import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import { foldSession, SessionFold } from "../../log/session-fold";
import { findFactIndex, foldPastSession } from "./past-session";

const FOLDER = join(import.meta.dirname, "../../../../tests/recordings");

function recording(name: string): SylphEvent[] {
  const lines = readFileSync(join(FOLDER, name), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line)).filter((one) => one.kind === "event");
}

const FACTS = recording("approvals.ndjson");
const NOW = foldSession("s", FACTS);

it("is at every fact what the fold was there", () => {
  const fold = new SessionFold("s");
  for (const fact of FACTS) {
    fold.applyEvents([fact]);
    const made = foldPastSession("s", FACTS, fact.seq, NOW, 1000);
    expect(made.session.state).toBe(fold.session.state);
    expect(made.items).toEqual(fold.session.turns.flatMap((turn) => turn.items));
  }
});

it("begins where the facts begin, and shows the end of much", () => {
  const end = FACTS.at(-1)?.seq ?? 0;
  const all = foldPastSession("s", FACTS, end, NOW, 1000).items.length;
  expect(foldPastSession("s", FACTS, end, NOW, 1)).toMatchObject({ before: all - 1 });
  expect(foldPastSession("s", FACTS.slice(3), end, NOW).session.seq).toBe(end);
  expect(foldPastSession("s", [], 0, NOW).items).toEqual([]);
});

it.each(readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson")))("says the same of %s where not all of it is loaded", (name) => {
  const facts = recording(name);
  const now = foldSession("s", facts);
  for (let from = 1; from < facts.length; from += 7) {
    for (let upto = from; upto < facts.length; upto += 5) {
      const { session, cost } = foldPastSession("s", facts.slice(from), facts[upto]?.seq ?? 0, now);
      const whole = foldPastSession("s", facts, facts[upto]?.seq ?? 0, now);
      const { model, mode, state } = whole.session;
      expect(session).toMatchObject({ model, mode, state });
      const copied = facts.some((fact, at) => fact.type === "session.forked" && at > upto);
      expect(cost).toBe(copied ? null : whole.cost);
    }
  }
});

it("finds the fact of a moment", () => {
  const facts = [10, 20, 20, 30].map((ts, at) => ({ ts, seq: at + 1 }) as SylphEvent);
  expect([5, 10, 25, 20, 99].map((ts) => findFactIndex(facts, ts))).toEqual([0, 0, 2, 2, 3]);
});
