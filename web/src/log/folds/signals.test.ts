import { expect, it } from "vitest";

import type { SylphEvent } from "../events";
import { SessionFold } from "../session-fold";

let seq = 0;
const event = (type: string, data: object, signal = false): SylphEvent =>
  ({ v: 1, session: "s", seq: signal ? 0 : ++seq, turn: "t1", ts: 0, actor: "sylph", cause: 0, hash: "", type, data }) as SylphEvent;
const signal = (type: string, data: object): SylphEvent => event(type, data, true);

function atWork(): SessionFold {
  seq = 0;
  const fold = new SessionFold("s");
  fold.applyEvents([
    event("input.received", { id: "i", text: "go" }),
    event("turn.started", { input: "i" }),
    event("model.requested", { model: "m", round: 1 }),
  ]);
  return fold;
}

it("has the same in hand whether every piece was heard, or all at once", () => {
  const [early, late] = [atWork(), atWork()];
  early.applyEvents([
    signal("delta.reasoning", { text: "hm " }),
    signal("delta.text", { text: "one " }),
    signal("delta.text", { text: "two" }),
    signal("delta.args", { index: 0, name: "shell", text: "{" }),
  ]);
  late.applyEvents([signal("delta.text", { text: "two" }), signal("live", { text: "one two", reasoning: "hm ", calls: [{ name: "shell", text: "{" }] })]);
  expect(late.session.live).toEqual(early.session.live);
  // What comes then is added.
  for (const fold of [early, late]) fold.applyEvents([signal("delta.text", { text: " three" }), signal("delta.args", { index: 0, name: "", text: "}" })]);
  expect(late.session.live).toEqual(early.session.live);
  expect(late.session.live.text).toBe("one two three");
});

it("takes the output of a command that runs, and not of one that is done", () => {
  const fold = atWork();
  fold.applyEvents([
    event("tool.called", { call: "a", name: "shell", arguments: "{}" }),
    event("tool.started", { call: "a", effect: "read", recourse: "pure" }),
    event("tool.called", { call: "b", name: "shell", arguments: "{}" }),
    event("tool.finished", { call: "b", ok: true, output: "all of it" }),
    signal("tool.output", { call: "a", text: "tick 3\n" }),
    signal("live", { outputs: { a: "tick 1\ntick 2\ntick 3\n", b: "some" } }),
  ]);
  expect([fold.session.calls.get("a")?.live, fold.session.calls.get("b")?.live]).toEqual(["tick 1\ntick 2\ntick 3\n", ""]);
});
