import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import { Fold, folded } from "../../log/session-fold";
import { titleOf } from "../../log/folds/turn-facts";
import type { Session } from "../../log/session";
import { ended, repeated } from "./turn-outcome";
import { before, later, rows, said, thinking, upto } from "./conversation-rows";

const FOLDER = join(import.meta.dirname, "../../../../tests/recordings");

function recording(name: string): SylphEvent[] {
  return readFileSync(join(FOLDER, name), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .filter((record) => record.kind === "event");
}

describe.each(readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson")))("%s", (name) => {
  const events = recording(name);

  it("has a row for everything, each with a key of its own", () => {
    const session = folded("s", events);
    const list = rows(session);
    expect(new Set(list.map((row) => row.key)).size).toBe(list.length);
    const items = session.turns.flatMap((turn) => turn.items.filter((item) => !repeated(turn, item)));
    expect(list.flatMap((row) => (row.kind === "item" ? [row.item] : []))).toEqual(items);
    expect(list.filter((row) => row.kind === "end").length).toBe(session.turns.filter((turn) => turn.outcome).length);
  });

  it("keeps the rows of turns that nothing happened to", () => {
    const fold = new Fold("s");
    fold.take(events.slice(0, -1));
    const was = new Set(rows(fold.session));
    const turns = fold.session.turns;
    fold.take(events.slice(-1));
    const same = fold.session.turns.filter((turn, at) => turn === turns[at]);
    for (const row of rows(fold.session)) if (same.includes(row.turn)) expect(was.has(row)).toBe(true);
  });

  it("leaves no question open when its turn has ended", () => {
    const session = folded("s", events);
    const ended = new Set(session.turns.filter((turn) => turn.outcome).map((turn) => turn.id));
    for (const question of session.questions.values()) if (question.open) expect(ended.has(question.turn)).toBe(false);
  });
});

it("tells a failure once, and a stop as what it was", () => {
  const turns = folded("s", recording("troubled.ndjson")).turns;
  const refused = turns.find((turn) => turn.id === "t3");
  expect(refused && rows({ turns: [refused] } as Session).map((row) => row.kind === "item" && row.item.kind)).toEqual(["said", false]);
  expect(refused && ended(refused)).toMatchObject({ tone: "bad", again: true, trouble: { message: "openai refused the request: bad day" } });
  const [first, second] = folded("s", recording("stopped.ndjson")).turns;
  expect(first && ended(first)).toEqual({ text: "You stopped it: too long", tone: "plain", trouble: null, again: true });
  expect(second && ended(second)).toMatchObject({ text: "You stopped it." });
  const [budget] = folded("s", recording("thrifty.ndjson")).turns.filter((turn) => turn.outcome === "budget");
  expect(budget && ended(budget).trouble).toBeNull();
});

it("copies a whole turn from its last word, and up to an earlier one", () => {
  const session = folded("s", recording("fork.ndjson"));
  const turn = session.turns.find((one) => one.id === "t2");
  const last = turn?.items.at(-1);
  expect(turn && last && [last.kind, upto(turn, last)]).toEqual(["told", 29]);
  const call = turn?.items.find((item) => item.kind === "called");
  expect(turn && call && upto(turn, call)).toBe(call?.seq);
  expect(session.turns.filter((one) => one.id).map((one) => later(session, one))).toEqual([2, 1, 0]);
});

it("thinks while the model is waited for, and not while a call runs or a person is asked", () => {
  const events = recording("approvals.ndjson");
  const at = (seq: number): boolean => {
    const session = folded("s", events.slice(0, seq));
    const turn = session.turns.at(-1);
    return !!turn && thinking(session, turn);
  };
  const seq = (type: string, from = 0): number => events.find((event) => event.type === type && event.seq > from)?.seq ?? 0;
  expect(at(seq("model.requested"))).toBe(true);
  expect(at(seq("asked"))).toBe(false);
  expect(at(seq("tool.started"))).toBe(false);
  expect(at(seq("model.requested", seq("tool.started")))).toBe(true);
});

it("lists what was said, and where a copy would end before it", () => {
  const session = folded("s", recording("steering.ndjson"));
  expect(said(session).length).toBeGreaterThan(0);
  for (const turn of session.turns) {
    for (const item of turn.items) {
      if (item.kind !== "said") continue;
      expect(before(turn, item)).toBeLessThan(item.seq);
      expect(before(turn, item)).toBeGreaterThan(0);
    }
  }
});

it("takes over what waits although its facts are not loaded", () => {
  const fold = new Fold("s", 10);
  const event = { v: 1, session: "s", seq: 10, turn: "t2", ts: 5, actor: "user", cause: 0, hash: "" };
  fold.waits([{ id: "i9", text: "later", follow: true, images: [] }], []);
  expect(fold.session.queue.map((one) => one.id)).toEqual(["i9"]);
  fold.take([{ ...event, type: "turn.started", data: { input: "i9" } }]);
  expect(fold.session.queue).toEqual([]);
  expect(fold.session.turns[0]?.items[0]).toMatchObject({ kind: "said", text: "later", seq: 10 });
});

it("calls a session by its first words", () => {
  expect(titleOf("  Mend\n the   parser ")).toBe("Mend the parser");
  expect(titleOf("x".repeat(70))).toBe(`${"x".repeat(59)}…`);
});
