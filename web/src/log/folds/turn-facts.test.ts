import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import type { Bodies, SylphEvent, Wire } from "../events";
import type { Session, ToolCall } from "../session";
import { foldSession, SessionFold } from "../session-fold";

const FOLDER = join(import.meta.dirname, "../../../../tests/recordings");

function recording(name: string): SylphEvent[] {
  const lines = readFileSync(join(FOLDER, `${name}.ndjson`), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line)).filter((record) => record.kind === "event");
}

/** A log, written down as pairs; `turn` is the one that runs. */
class Script {
  readonly events: SylphEvent[] = [];
  turn = "";
  ts = 1_000;

  add<W extends Wire>(type: W, data: Bodies[W]): this {
    if (type === "turn.started") this.turn = `t${this.events.length}`;
    this.ts += 10;
    const seq = this.events.length + 1;
    this.events.push({ v: 1, session: "s", seq, turn: this.turn, ts: this.ts, actor: "sylph", cause: 0, hash: "", type, data } as SylphEvent);
    if (type === "state.changed" && (data as Bodies["state.changed"]).to === "idle") this.turn = "";
    return this;
  }

  begin(): this {
    return this.add("session.created", { workspace: "/w", model: "m", mode: "ask" })
      .add("input.received", { id: "i1", text: "go" })
      .add("turn.started", { input: "i1" });
  }

  end(outcome: Bodies["turn.ended"]["outcome"], kind = ""): this {
    return this.add("turn.ended", { outcome, trouble: kind ? { kind, message: "interrupted" } : null }).add("state.changed", { to: "idle", was: "x", event: "close" });
  }

  get session(): Session {
    return foldSession("s", this.events);
  }
}

const calls = (session: Session): Record<string, ToolCall["state"]> => Object.fromEntries([...session.calls].map(([id, call]) => [id, call.state]));
const kinds = (session: Session, at = 0): string[] => session.turns[at]?.items.map((item) => item.kind) ?? [];
const CUT = { kind: "cancelled", message: "The answer was cut off." };

describe("a stop", () => {
  it("keeps what was said until then, as unfinished, and is no failure", () => {
    const [turn] = foldSession("s", recording("stopped")).turns;
    expect(turn?.items.at(-1)).toMatchObject({ kind: "assistant", text: "Once the", cut: true });
    expect(turn?.items.some((item) => item.kind === "note")).toBe(false);
  });

  it("keeps half an answer whose connection broke, and tells why", () => {
    const turn = foldSession("s", recording("troubled")).turns.find((one) => one.id === "t2");
    expect(turn?.items.slice(1)).toMatchObject([{ kind: "assistant", text: "Half of it is lo", cut: true }, { kind: "note", tone: "bad" }]);
  });

  it("shows nothing of a try that is made anew, nor of what another role was asked", () => {
    const script = new Script().begin();
    script.add("model.failed", { model: "m", trouble: { kind: "cut", message: "broke" }, attempt: 1, partial: "Half", retry_ms: 100 });
    script.add("model.failed", { model: "m", trouble: CUT, attempt: 1, partial: "A title", role: "title" });
    expect(kinds(script.session)).toEqual(["user", "note"]);
  });

  it("stops calls instead of failing them", () => {
    const session = foldSession("s", recording("stopped"));
    expect(calls(session)).toEqual({ t2_c1: "stopped", t2_c2: "stopped", t3_c1: "stopped" });
  });

  it("tells a command that it ended from one that had failed before", () => {
    const script = new Script().begin().add("model.requested", { model: "m", round: 1 });
    const run = (call: string, exit: number): void => {
      script.add("tool.called", { call, name: "shell", arguments: "{}" }).add("tool.started", { call, effect: "read", recourse: "by_probe" });
      script.ts += 500;
      script.add("tool.finished", { call, ok: false, output: "one", exit, ms: 5 });
    };
    run("c1", 143);
    script.add("model.requested", { model: "m", round: 2 });
    run("c2", 1);
    run("c3", 143);
    expect(calls(script.session)).toEqual({ c1: "failed", c2: "failed", c3: "failed" });
    script.end("cancelled", "cancelled");
    expect(calls(script.session)).toEqual({ c1: "failed", c2: "failed", c3: "stopped" });
    expect(script.session.calls.get("c3")).toMatchObject({ exit: 143, output: "one", ms: 510 });
  });

  it("keeps a message that the work did not hear any more", () => {
    const script = new Script().begin().add("model.requested", { model: "m", round: 1 });
    script.add("input.received", { id: "i2", text: "shorter", delivery: "steer" }).add("input.cancelled", { id: "i2" });
    script.add("model.failed", { model: "m", trouble: CUT, attempt: 1, partial: "Long" }).end("cancelled", "cancelled");
    const session = script.session;
    expect(session.queue).toEqual([]);
    expect(session.turns[0]?.items.at(-1)).toMatchObject({ kind: "user", text: "shorter", lost: true });
  });

  it("leaves out a message that was taken back while the work went on", () => {
    const script = new Script().begin().add("input.received", { id: "i2", text: "no", delivery: "follow" }).add("input.cancelled", { id: "i2" });
    script.add("model.requested", { model: "m", round: 2 }).end("cancelled", "cancelled");
    expect(kinds(script.session)).toEqual(["user"]);
    expect(kinds(foldSession("s", recording("steering")))).toEqual(["user", "tool", "user", "assistant"]);
  });
});

describe("a copy", () => {
  it("can begin after the last fact of a turn", () => {
    const session = foldSession("s", recording("fork"));
    expect(session.turns.map((turn) => [turn.id, turn.last]).filter(([id]) => id)).toEqual([["t1", 14], ["t2", 29], ["t3", 39]]);
  });

  it("that begins in the middle of a turn ends it when its last fact was, and all its calls", () => {
    const script = new Script().begin().add("tool.called", { call: "c1", name: "write", arguments: "{}" });
    const left = script.ts;
    script.ts += 840_000;
    script.add("session.forked", { parent: "p", at: 4, root: "p" }).end("interrupted", "forked");
    expect(script.session.turns[0]).toMatchObject({ ended: left });
    expect(calls(script.session)).toEqual({ c1: "stopped" });
  });
});

describe("a turn that goes on after a crash", () => {
  const running = new Script().begin().add("tool.called", { call: "c1", name: "shell", arguments: "{}" }).add("tool.started", { call: "c1", effect: "read", recourse: "pure" });
  const printed = { ...running.events[0], seq: 0, type: "tool.output", data: { call: "c1", text: "one\n" } } as SylphEvent;
  const said = { ...running.events[0], seq: 0, type: "delta.text", data: { text: "Hel" } } as SylphEvent;
  const resumed = [...running.events, { ...running.events[2], seq: 6, type: "turn.resumed", data: { attempt: 1 } } as SylphEvent];

  it("prints anew", () => {
    const fold = new SessionFold("s");
    fold.applyEvents([...running.events, printed, ...resumed.slice(5), printed]);
    expect(fold.session.calls.get("c1")?.live).toBe("one\n");
  });

  it("takes nothing over from before, where it is folded anew", () => {
    const before = new SessionFold("s");
    before.applyEvents([...running.events, printed, said]);
    const same = new SessionFold("s");
    same.applyEvents(running.events);
    same.adoptLive(before.session);
    expect([same.session.calls.get("c1")?.live, same.session.live.text]).toEqual(["one\n", "Hel"]);
    const later = new SessionFold("s");
    later.applyEvents(resumed);
    later.adoptLive(before.session);
    expect([later.session.calls.get("c1")?.live, later.session.live.text]).toEqual(["", ""]);
  });
});

describe("questions", () => {
  const asked = (id: string, call: string): Bodies["asked"] => ({ id, kind: "approval", question: "May it?", call, choices: ["yes", "no"] });

  it("let their own call wait, until they are answered", () => {
    const script = new Script().begin();
    for (const id of ["c1", "c2", "c3"]) script.add("tool.called", { call: id, name: "write", arguments: "{}" });
    script.add("asked", { ...asked("q1", "c1"), calls: ["c1", "c2"] }).add("asked", asked("q2", "c3"));
    expect(calls(script.session)).toEqual({ c1: "waiting", c2: "waiting", c3: "waiting" });
    script.add("answered", { id: "q1", answer: "yes", by: "user", via: "phone" });
    expect(calls(script.session)).toEqual({ c1: "called", c2: "called", c3: "waiting" });
    expect(script.session.questions.get("q1")).toMatchObject({ open: false, by: "user", via: "phone" });
    script.add("answered", { id: "q2", answer: "no", by: "user" });
    expect(calls(script.session)).toEqual({ c1: "called", c2: "called", c3: "refused" });
  });

  it("let a call that asks itself wait for the last of its answers", () => {
    const script = new Script().begin().add("tool.called", { call: "c1", name: "ask_user", arguments: "{}" });
    script.add("tool.started", { call: "c1", effect: "read", recourse: "pure" });
    for (const id of ["q1", "q2"]) script.add("asked", { id, kind: "question", question: "Which?", call: "c1" });
    expect(calls(script.session)).toEqual({ c1: "asking" });
    script.add("answered", { id: "q1", answer: "blue" });
    expect(calls(script.session)).toEqual({ c1: "asking" });
    script.add("answered", { id: "q2", answer: "red" });
    expect(calls(script.session)).toEqual({ c1: "running" });
  });
});

describe("an undo", () => {
  it("can be taken back, once", () => {
    const script = new Script().begin().end("finished").add("undo.started", { id: "u1" }).add("files.restored", { undo: "u1" });
    expect(script.session.redo).toBe("u1");
    script.add("undo.started", { id: "u2", redo: "u1" }).add("files.restored", { undo: "u2" });
    expect(script.session.redo).toBe("");
  });
});
