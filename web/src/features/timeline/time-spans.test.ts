import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import { buildSpans, buildTimeAxis } from "./time-spans";

const FOLDER = join(import.meta.dirname, "../../../../tests/recordings");
const RECORDINGS = readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson"));

function recording(name: string): SylphEvent[] {
  const lines = readFileSync(join(FOLDER, name), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line)).filter((record) => record.kind === "event");
}

describe.each(RECORDINGS)("%s", (name) => {
  const facts = recording(name);

  it("has a span for every turn, model call, tool call and question", () => {
    const made = buildSpans(facts);
    const count = (type: string): number => facts.filter((fact) => fact.type === type).length;
    const lanes = (lane: string): number => made.filter((span) => span.lane === lane).length;
    expect(lanes("turn")).toBe(count("turn.started"));
    expect(lanes("model")).toBe(count("model.requested"));
    expect(lanes("tool")).toBe(count("tool.called"));
    expect(lanes("ask")).toBe(count("asked"));
  });

  it("lays nothing over anything else in a row", () => {
    const rows = Map.groupBy(buildSpans(facts), (span) => `${span.lane} ${span.row}`);
    for (const row of rows.values()) {
      const sorted = row.sort((a, b) => a.from - b.from || a.to - b.to);
      sorted.forEach((span, at) => expect(span.from).toBeGreaterThanOrEqual(sorted[at - 1]?.to ?? 0));
    }
  });

  it("keeps the order of time on its axis, and finds the way back", () => {
    const scale = buildTimeAxis(facts);
    let before = 0;
    for (const { ts } of [...facts].sort((a, b) => a.ts - b.ts)) {
      expect(scale.place(ts)).toBeGreaterThanOrEqual(before);
      before = scale.place(ts);
      expect(scale.time(before)).toBeLessThanOrEqual(ts);
    }
    expect(before).toBeLessThanOrEqual(scale.length);
  });
});

it("ends what was under way in the original where the copy was made", () => {
  const facts = recording("fork.ndjson").map((fact) => (fact.seq < 12 ? fact : { ...fact, ts: fact.ts + 840_000 }));
  const turn = buildSpans(facts).find((span) => span.lane === "turn");
  expect(turn?.to).toBe(facts[10]?.ts);
  expect(turn?.tone).toBe("warn");
});

it("shows what was stopped as stopped, not as gone wrong", () => {
  const made = buildSpans(recording("stopped.ndjson"));
  expect(made.filter((span) => span.tone === "bad")).toEqual([]);
});

it("cuts long pauses, however many there are", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 100_000_000 }), { minLength: 2, maxLength: 50 }), (times) => {
      const facts = times.sort((a, b) => a - b).map((ts, at) => ({ ts, seq: at + 1 }) as SylphEvent);
      expect(buildTimeAxis(facts, 1000).length).toBeLessThanOrEqual(1000 * (times.length - 1));
    }),
  );
});

it("tells a command that a stop has ended from one that failed by itself", () => {
  const facts: SylphEvent[] = [];
  const add = (type: string, data: object): void => void facts.push({ seq: facts.length + 1, ts: facts.length * 10, turn: "t", type, data } as SylphEvent);
  const run = (call: string, exit: number): void => {
    add("tool.called", { call, name: "shell", arguments: "{}" });
    add("tool.finished", { call, ok: false, output: "one", exit });
  };
  add("turn.started", { input: "i" });
  run("c1", 143);
  add("model.requested", { model: "m", round: 2 });
  run("c2", 1);
  run("c3", 143);
  add("turn.ended", { outcome: "cancelled" });
  expect(buildSpans(facts).filter((span) => span.lane === "tool").map((span) => span.tone)).toEqual(["bad", "bad", "warn"]);
});
