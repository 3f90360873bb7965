import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import type { SylphEvent } from "../log/events";
import { Fold, folded, titleOf } from "../log/fold";
import { before, rows, said } from "./rows";

const FOLDER = join(import.meta.dirname, "../../../tests/recordings");

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
    expect(list.filter((row) => row.kind === "item").length).toBe(session.turns.reduce((sum, turn) => sum + turn.items.length, 0));
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
