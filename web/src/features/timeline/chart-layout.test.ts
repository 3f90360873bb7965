import fc from "fast-check";
import { expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import { findNeighbour, layOutLanes, listTicks } from "./chart-layout";
import { buildTimeAxis, type Lane, type Span } from "./time-spans";

function span(lane: Lane, seq: number, from: number, to: number, row = 0): Span {
  return { lane, row, from, to, open: false, label: `${lane} ${seq}`, tone: "plain", turn: "t", seqs: [seq] };
}

const SPANS = [span("turn", 1, 0, 1000), span("model", 2, 10, 200), span("model", 5, 600, 900), span("tool", 3, 210, 580), span("tool", 4, 220, 300, 1)];
const SCALE = buildTimeAxis([0, 10, 200, 210, 580, 1000].map((ts, at) => ({ ts, seq: at + 1 }) as SylphEvent));
const { lanes, height } = layOutLanes(SPANS, SCALE);
const go = (from: Span, key: string): string => findNeighbour(lanes, from, key)?.span.label ?? "";

it("lays lanes one below the other, as high as they need", () => {
  expect(lanes.map((lane) => lane.lane)).toEqual(["turn", "phase", "model", "tool", "ask"]);
  const tops = lanes.map((lane) => lane.top);
  expect(tops.toSorted((a, b) => a - b)).toEqual(tops);
  const low = Math.max(...lanes.flatMap((lane) => lane.spans.map((one) => one.y)));
  expect(low).toBeLessThan(height);
});

it("goes along a lane and from lane to lane by keys, over empty ones", () => {
  const [turn, model, , tool] = SPANS as [Span, Span, Span, Span, Span];
  expect(go(model, "ArrowRight")).toBe("model 5");
  expect(go(model, "ArrowLeft")).toBe("");
  expect(go(turn, "ArrowDown")).toBe("model 2");
  expect(go(tool, "ArrowUp")).toBe("model 2");
  expect(go(tool, "ArrowDown")).toBe("");
  expect([go(tool, "End"), go(tool, "Home")]).toEqual(["tool 4", "tool 3"]);
});

it("marks time so that it can be read, however far one looks in", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 50, noNaN: true }), fc.integer({ min: 0, max: 1e9 }), (perMs, from) => {
      const made = listTicks(from, from + 1200 / perMs, perMs);
      expect(made.length).toBeLessThanOrEqual(13);
      made.slice(1).forEach((at, index) => expect((at - (made[index] ?? 0)) * perMs).toBeGreaterThan(109));
    }),
  );
});
