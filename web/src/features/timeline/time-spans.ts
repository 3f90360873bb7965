/** A session on a time axis: what took from when to when, in lanes. Made of facts alone. */

import type { SylphEvent } from "../../log/events";

export const LANES = ["turn", "phase", "model", "tool", "ask"] as const;
export type Lane = (typeof LANES)[number];
export type SpanTone = "plain" | "good" | "warn" | "bad";

export interface Span {
  lane: Lane;
  /** Rows within a lane: what ran at the same time lies side by side. */
  row: number;
  from: number;
  /** Where it is not over yet, the time of the last fact. */
  to: number;
  open: boolean;
  label: string;
  tone: SpanTone;
  turn: string;
  /** The facts it is made of. */
  seqs: number[];
}

/** An axis without the hours in which nothing happened: each is cut down to `pause`. */
export interface TimeAxis {
  length: number;
  place(ts: number): number;
  time(place: number): number;
  cuts: { at: number; ms: number }[];
}

type OpenSpans = Map<string, Span>;

export function buildSpans(facts: readonly SylphEvent[]): Span[] {
  const made: Span[] = [];
  const open: OpenSpans = new Map();
  const beginSpan = (key: string, lane: Lane, event: SylphEvent, label: string): void => {
    const span: Span = {
      lane, row: 0, from: event.ts, to: event.ts, open: true, label, tone: "plain", turn: event.turn, seqs: [event.seq],
    };
    made.push(span);
    open.set(key, span);
  };
  const endSpan = (key: string, event: SylphEvent, tone: SpanTone): void => {
    const span = open.get(key);
    if (!span) return;
    open.delete(key);
    span.to = Math.max(span.from, event.ts);
    span.open = false;
    span.tone = tone;
    span.seqs.push(event.seq);
  };
  let before = facts[0];
  /** Commands that a signal has ended since a model was last asked: if the turn is stopped then, that has ended them. */
  let killed: Span[] = [];
  for (const event of facts) {
    if (event.type === "model.requested") killed = [];
    const ending = event.type === "tool.finished" && (event.data.exit ?? 0) > 128 ? open.get(`tool ${event.data.call}`) : undefined;
    if (ending) killed.push(ending);
    // What was under way in the original was not in the copy.
    if (event.type === "session.forked" && before) for (const key of open.keys()) endSpan(key, before, "warn");
    applyFact(event, open, beginSpan, endSpan);
    if (event.type === "turn.ended" && event.data.outcome === "cancelled") for (const span of killed) span.tone = "warn";
    before = event;
  }
  const last = facts.at(-1)?.ts ?? 0;
  for (const span of open.values()) span.to = Math.max(span.from, last);
  return assignRows(made);
}

function applyFact(
  event: SylphEvent,
  open: OpenSpans,
  begin: (key: string, lane: Lane, event: SylphEvent, label: string) => void,
  end: (key: string, event: SylphEvent, tone: SpanTone) => void,
): void {
  switch (event.type) {
    case "turn.started":
      begin(`turn ${event.turn}`, "turn", event, event.turn);
      break;
    case "turn.ended": {
      const tone = event.data.outcome === "finished" ? "good" : event.data.outcome === "failed" ? "bad" : "warn";
      end("phase", event, tone === "good" ? "plain" : tone);
      // Whatever of it has no end of its own has ended with it.
      for (const key of open.keys()) if (/^(model|tool|ask) /.test(key)) end(key, event, "warn");
      end(`turn ${event.turn}`, event, tone);
      break;
    }
    case "state.changed":
      end("phase", event, "plain");
      if (event.data.to !== "idle") begin("phase", "phase", event, event.data.to);
      break;
    case "model.requested":
      begin(`model ${event.data.role ?? "main"}`, "model", event, event.data.model);
      break;
    case "model.responded":
      end(`model ${event.data.role ?? "main"}`, event, "good");
      break;
    case "model.failed":
      end(`model ${event.data.role ?? "main"}`, event, event.data.trouble.kind === "cancelled" ? "warn" : "bad");
      break;
    case "tool.called":
      begin(`tool ${event.data.call}`, "tool", event, event.data.name);
      break;
    case "tool.finished":
      end(`tool ${event.data.call}`, event, event.data.ok ? "good" : event.data.trouble?.kind === "cancelled" ? "warn" : "bad");
      break;
    case "asked":
      begin(`ask ${event.data.id}`, "ask", event, event.data.question);
      break;
    case "answered":
      end(`ask ${event.data.id}`, event, event.data.answer === "no" ? "bad" : "good");
      break;
  }
}

/** Gives each span the first row of its lane that is free when it begins. */
function assignRows(made: Span[]): Span[] {
  const ends = new Map<Lane, number[]>();
  for (const span of [...made].sort((a, b) => a.from - b.from)) {
    const rows = ends.get(span.lane) ?? [];
    ends.set(span.lane, rows);
    const free = rows.findIndex((end) => end <= span.from);
    span.row = free < 0 ? rows.length : free;
    rows[span.row] = span.to;
  }
  return made;
}

/** Pieces of the axis: from `start` on it lies at `at`, `1` wide per millisecond. */
export function buildTimeAxis(facts: readonly SylphEvent[], pause = 5_000): TimeAxis {
  const pieces: { start: number; at: number }[] = [];
  const cuts: TimeAxis["cuts"] = [];
  let before = facts[0]?.ts ?? 0;
  let at = 0;
  pieces.push({ start: before, at });
  for (const { ts } of facts) {
    const gap = ts - before;
    if (gap > pause) {
      at += pause;
      cuts.push({ at: at - pause / 2, ms: gap });
      pieces.push({ start: ts, at });
    } else {
      at += Math.max(0, gap);
    }
    before = Math.max(before, ts);
  }
  const length = at;
  const findPiece = (value: number, by: (piece: { start: number; at: number }) => number): number => {
    let low = 0;
    let high = pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (by(pieces[middle] ?? { start: 0, at: 0 }) <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  return {
    length,
    cuts,
    place: (ts) => {
      const index = findPiece(ts, (each) => each.start);
      const piece = pieces[index] ?? { start: 0, at: 0 };
      const next = pieces[index + 1];
      return Math.min(piece.at + Math.max(0, ts - piece.start), next?.at ?? length);
    },
    time: (place) => {
      const piece = pieces[findPiece(place, (each) => each.at)] ?? { start: 0, at: 0 };
      return piece.start + (place - piece.at);
    },
  };
}
