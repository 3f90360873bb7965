import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import { titleFromText } from "../../log/folds/turn-facts";
import type { Session } from "../../log/session";
import { foldSession, SessionFold } from "../../log/session-fold";
import { buildRows, countLaterTurns, forkPointAfter, forkPointBefore, isModelThinking, listUserTexts } from "./conversation-rows";
import { describeOutcome, repeatsOutcome } from "./turn-outcome";

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
    const session = foldSession("s", events);
    const list = buildRows(session);
    expect(new Set(list.map((row) => row.key)).size).toBe(list.length);
    const items = session.turns.flatMap((turn) => turn.items.filter((item) => !repeatsOutcome(turn, item)));
    expect(list.flatMap((row) => (row.kind === "item" ? [row.item] : []))).toEqual(items);
    expect(list.filter((row) => row.kind === "end").length).toBe(session.turns.filter((turn) => turn.outcome).length);
  });

  it("keeps the rows of turns that nothing happened to", () => {
    const fold = new SessionFold("s");
    fold.applyEvents(events.slice(0, -1));
    const was = new Set(buildRows(fold.session));
    const turns = fold.session.turns;
    fold.applyEvents(events.slice(-1));
    const same = fold.session.turns.filter((turn, at) => turn === turns[at]);
    for (const row of buildRows(fold.session)) if (same.includes(row.turn)) expect(was.has(row)).toBe(true);
  });

  it("leaves no question open when its turn has ended", () => {
    const session = foldSession("s", events);
    const ended = new Set(session.turns.filter((turn) => turn.outcome).map((turn) => turn.id));
    for (const question of session.questions.values()) if (question.open) expect(ended.has(question.turn)).toBe(false);
  });
});

it("tells a failure once, and a stop as what it was", () => {
  const turns = foldSession("s", recording("troubled.ndjson")).turns;
  const refused = turns.find((turn) => turn.id === "t3");
  expect(refused && buildRows({ turns: [refused] } as Session).map((row) => row.kind === "item" && row.item.kind)).toEqual(["user", false]);
  expect(refused && describeOutcome(refused)).toMatchObject({ tone: "bad", again: true, trouble: { message: "openai refused the request: bad day" } });
  const [first, second] = foldSession("s", recording("stopped.ndjson")).turns;
  expect(first && describeOutcome(first)).toEqual({ text: "You stopped it: too long", tone: "plain", trouble: null, again: true });
  expect(second && describeOutcome(second)).toMatchObject({ text: "You stopped it." });
  const [budget] = foldSession("s", recording("thrifty.ndjson")).turns.filter((turn) => turn.outcome === "budget");
  expect(budget && describeOutcome(budget).trouble).toBeNull();
});

it("copies a whole turn from its last word, and up to an earlier one", () => {
  const session = foldSession("s", recording("fork.ndjson"));
  const turn = session.turns.find((one) => one.id === "t2");
  const last = turn?.items.at(-1);
  expect(turn && last && [last.kind, forkPointAfter(turn, last)]).toEqual(["assistant", 29]);
  const call = turn?.items.find((item) => item.kind === "tool");
  expect(turn && call && forkPointAfter(turn, call)).toBe(call?.seq);
  expect(session.turns.filter((one) => one.id).map((one) => countLaterTurns(session, one))).toEqual([2, 1, 0]);
});

it("thinks while the model is waited for, and not while a call runs or a person is asked", () => {
  const events = recording("approvals.ndjson");
  const at = (seq: number): boolean => {
    const session = foldSession("s", events.slice(0, seq));
    const turn = session.turns.at(-1);
    return !!turn && isModelThinking(session, turn);
  };
  const seq = (type: string, from = 0): number => events.find((event) => event.type === type && event.seq > from)?.seq ?? 0;
  expect(at(seq("model.requested"))).toBe(true);
  expect(at(seq("asked"))).toBe(false);
  expect(at(seq("tool.started"))).toBe(false);
  expect(at(seq("model.requested", seq("tool.started")))).toBe(true);
});

it("lists what was said, and where a copy would end before it", () => {
  const session = foldSession("s", recording("steering.ndjson"));
  expect(listUserTexts(session).length).toBeGreaterThan(0);
  for (const turn of session.turns) {
    for (const item of turn.items) {
      if (item.kind !== "user") continue;
      expect(forkPointBefore(turn, item)).toBeLessThan(item.seq);
      expect(forkPointBefore(turn, item)).toBeGreaterThan(0);
    }
  }
});

it("takes over what waits although its facts are not loaded", () => {
  const fold = new SessionFold("s", 10);
  const event = { v: 1, session: "s", seq: 10, turn: "t2", ts: 5, actor: "user", cause: 0, hash: "" };
  fold.addPending([{ id: "i9", text: "later", follow: true, images: [] }], []);
  expect(fold.session.queue.map((one) => one.id)).toEqual(["i9"]);
  fold.applyEvents([{ ...event, type: "turn.started", data: { input: "i9" } }]);
  expect(fold.session.queue).toEqual([]);
  expect(fold.session.turns[0]?.items[0]).toMatchObject({ kind: "user", text: "later", seq: 10 });
});

it("calls a session by its first words", () => {
  expect(titleFromText("  Mend\n the   parser ")).toBe("Mend the parser");
  expect(titleFromText("x".repeat(70))).toBe(`${"x".repeat(59)}…`);
});
