import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { SylphEvent } from "./events";
import { EventGapError, foldSession, SessionFold } from "./session-fold";

const FOLDER = join(import.meta.dirname, "../../../tests/recordings");
const RECORDINGS = readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson"));

function recording(name: string): SylphEvent[] {
  return readFileSync(join(FOLDER, name), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .filter((record) => record.kind === "event");
}

/** Signals as a model's stream would bring them, somewhere between the facts. */
function signal(session: string, text: string): SylphEvent {
  return { v: 1, session, seq: 0, turn: "", ts: 0, actor: "sylph", cause: 0, hash: "", type: "delta.text", data: { text } };
}

function known(events: SylphEvent[]): unknown {
  const session = foldSession("s", events);
  return { ...session, live: null };
}

describe.each(RECORDINGS)("%s", (name) => {
  const events = recording(name);

  it("ends every turn and call that the log ends", () => {
    const session = foldSession("s", events);
    expect(session.seq).toBe(events.at(-1)?.seq);
    const ended = new Set(events.filter((event) => event.type === "turn.ended").map((event) => event.turn));
    expect(new Set(session.turns.filter((turn) => turn.outcome).map((turn) => turn.id))).toEqual(ended);
    const finished = events.filter((event) => event.type === "tool.finished").length;
    const done = [...session.calls.values()].filter((call) => ["done", "failed", "refused", "stopped"].includes(call.state) && call.ended);
    expect(done.length).toBe(finished);
  });

  it("ends in the same session however often the stream is cut and taken up again", () => {
    const whole = known(events);
    const schedule = fc.array(fc.record({ size: fc.integer({ min: 1, max: 40 }), back: fc.integer({ min: 0, max: 30 }), noise: fc.string() }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(schedule, (pieces) => {
        const fold = new SessionFold("s");
        for (const { size, back, noise } of pieces) {
          // A reader begins anew a little before where it was, and hears of what it has already.
          const from = Math.max(0, fold.session.seq - back);
          fold.applyEvents([signal("s", noise), ...events.slice(from, from + back + size)]);
        }
        fold.applyEvents(events.slice(fold.session.seq));
        expect({ ...fold.session, live: null }).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });
});

describe("the fold", () => {
  const [first, second, third] = recording(RECORDINGS[0] ?? "") as [SylphEvent, SylphEvent, SylphEvent];

  it("refuses a gap, and says where to read from", () => {
    const fold = new SessionFold("s");
    fold.applyEvents([first]);
    expect(() => fold.applyEvents([third])).toThrow(EventGapError);
    fold.applyEvents([second, third]);
    expect(fold.session.seq).toBe(3);
  });

  it("passes over what it does not know", () => {
    const fold = new SessionFold("s");
    const newer = { ...second, type: "mind.changed", data: { deep: [1, 2] } } as unknown as SylphEvent;
    fold.applyEvents([first, newer]);
    expect(fold.session.seq).toBe(2);
  });

  it("replaces the turns it changes, and no others", () => {
    const events = recording("steering.ndjson");
    const fold = new SessionFold("s");
    fold.applyEvents(events.slice(0, -5));
    const before = fold.session.turns;
    fold.applyEvents(events.slice(-5));
    const changed = fold.session.turns.filter((turn, at) => turn !== before[at]);
    expect(changed.length).toBeLessThan(fold.session.turns.length + 1);
    for (const turn of before) expect(Object.isFrozen(turn) || fold.session.turns.some((one) => one.key === turn.key)).toBe(true);
  });

  it("folds a hundred thousand events in a second", () => {
    const events: SylphEvent[] = [];
    const add = (type: string, turn: string, data: object): void => {
      events.push({ ...first, seq: events.length + 1, type, turn, data } as unknown as SylphEvent);
    };
    add("session.created", "", first.data);
    for (let turn = 1; events.length < 100_000; turn++) {
      const id = `t${turn}`;
      add("input.received", "", { id: `i${turn}`, text: "go" });
      add("turn.started", id, { input: `i${turn}` });
      for (let call = 0; call < 10; call++) {
        const name = `c${turn}.${call}`;
        add("model.requested", id, { model: "m", round: call });
        add("model.responded", id, { model: "m", text: "Let me see.", finish: "tool_calls", cost: 10 });
        add("tool.called", id, { call: name, name: "read", arguments: "{}" });
        add("tool.decided", id, { call: name, decision: "allow", reason: "", by: "policy", effect: "read", risk: "safe" });
        add("tool.started", id, { call: name, effect: "read", recourse: "pure" });
        add("tool.finished", id, { call: name, ok: true, output: "x" });
      }
      add("turn.ended", id, { outcome: "finished" });
    }
    const began = performance.now();
    const session = foldSession("s", events);
    expect(session.seq).toBe(events.length);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});
