/** How the picture of a session is laid out and gone through. */

import { type Lane, LANES, type Span, type TimeAxis } from "./time-spans";

export const ROW_HEIGHT = 24;
export const LANE_HEAD_HEIGHT = 20;
export const CHART_TOP = 24;

/** A span with its place on the axis, in milliseconds of the axis. */
export interface PlacedSpan {
  span: Span;
  from: number;
  to: number;
  /** From the top, in pixels. */
  y: number;
}

export interface LaneLayout {
  lane: Lane;
  top: number;
  spans: PlacedSpan[];
}

export function layOutLanes(spans: readonly Span[], scale: TimeAxis): { lanes: LaneLayout[]; height: number } {
  let top = CHART_TOP;
  const byLane = Map.groupBy(spans, (span) => span.lane);
  const lanes = LANES.map((lane) => {
    const mine = byLane.get(lane) ?? [];
    const place = {
      lane,
      top,
      spans: mine
        .map((span) => ({ span, from: scale.place(span.from), to: scale.place(span.to), y: top + LANE_HEAD_HEIGHT + span.row * ROW_HEIGHT }))
        .sort((a, b) => a.from - b.from || a.to - b.to),
    };
    top += LANE_HEAD_HEIGHT + (1 + mine.reduce((most, span) => Math.max(most, span.row), 0)) * ROW_HEIGHT;
    return place;
  });
  return { lanes, height: top };
}

const TICK_STEPS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000];

/** Where marks of time stand: regular on the axis, and not closer than can be read. */
export function listTicks(from: number, to: number, perMs: number, apart = 110): number[] {
  const step = TICK_STEPS.find((one) => one * perMs >= apart) ?? apart / perMs;
  const made: number[] = [];
  for (let at = Math.ceil(Math.max(0, from) / step) * step; at <= to && made.length < 200; at += step) made.push(at);
  return made;
}

export function formatClock(ts: number, perMs: number): string {
  const date = new Date(ts);
  const time = date.toLocaleTimeString([], { hourCycle: "h23" });
  return perMs > 0.11 ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

/** The span that an arrow key leads to: along the lane, or to what lies nearest in the lane above or below. */
export function findNeighbour(lanes: readonly LaneLayout[], current: Span, key: string): PlacedSpan | null {
  const at = lanes.findIndex((lane) => lane.lane === current.lane);
  const mine = lanes[at]?.spans ?? [];
  const index = mine.findIndex((one) => one.span.seqs[0] === current.seqs[0]);
  const here = mine[index];
  if (!here) return null;
  if (key === "ArrowRight") return mine[index + 1] ?? null;
  if (key === "ArrowLeft") return mine[index - 1] ?? null;
  if (key === "Home") return mine[0] ?? null;
  if (key === "End") return mine.at(-1) ?? null;
  const by = key === "ArrowDown" ? 1 : -1;
  for (let lane = at + by; lanes[lane]; lane += by) {
    const found = findNearest(lanes[lane]?.spans ?? [], here);
    if (found) return found;
  }
  return null;
}

function findNearest(spans: readonly PlacedSpan[], to: PlacedSpan): PlacedSpan | null {
  let best: PlacedSpan | null = null;
  let least = Infinity;
  for (const one of spans) {
    const far = Math.max(0, one.from - to.to, to.from - one.to) * 1e6 + Math.abs(one.from - to.from);
    if (far < least) [best, least] = [one, far];
  }
  return best;
}
