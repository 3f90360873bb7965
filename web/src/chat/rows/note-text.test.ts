import { describe, expect, it } from "vitest";

import type { SylphEvent } from "../../log/events";
import type { SessionNote } from "../../log/session";
import { describeNote, secondsUntil } from "./note-text";

function note(type: string, data: object, ts = 1000): SessionNote {
  const fact = { v: 1, session: "s", seq: 5, turn: "t1", ts, actor: "sylph", cause: 0, hash: "", type, data } as unknown as SylphEvent;
  return { kind: "note", seq: 5, ts, tone: "plain", about: type, text: "", fact };
}

const TROUBLE = { kind: "overloaded", message: "The service is busy.", next: ["wait"] };

describe("told", () => {
  it("says nothing by its wire name", () => {
    const all = [
      note("session.forked", { parent: "abc", at: 3, root: "abc" }),
      note("session.mode", { mode: "plan", was: "ask" }),
      note("session.sandbox", { on: false }),
      note("session.model", { model: "a/b", was: "c/d" }),
      note("turn.resumed", { attempt: 1 }),
      note("model.failed", { model: "a/b", trouble: TROUBLE, attempt: 1 }),
      note("model.fell_back", { model: "a/b", to: "c/d", trouble: TROUBLE }),
      note("compaction.made", { tokens_before: 50_000, tokens_after: 900, summary: "It went well." }),
      note("compaction.failed", { why: "full", trouble: TROUBLE }),
      note("budget.warned", { scope: "session", name: "", what: "money", used: 80, cap: 100 }),
      note("budget.stopped", { scope: "day", name: "", what: "tokens", used: 80, cap: 100 }),
      note("budget.exceeded", { model: "a/b", what: "money", reserved: 10, used: 20 }),
      note("files.restored", { undo: "u1", restored: ["a"], left: [{ path: "b", why: "changed since" }] }),
      note("session.failed", { trouble: TROUBLE }),
    ];
    for (const one of all) {
      const said = describeNote(one).text;
      expect(said.length, one.about).toBeGreaterThan(10);
      expect(said).not.toContain(one.about);
      expect(said).not.toContain("undefined");
    }
  });

  it("counts down to the next try, and gives advice only where there is none", () => {
    const again = describeNote(note("model.failed", { model: "a/b", trouble: TROUBLE, attempt: 1, retry_ms: 4000 }, 10_000));
    expect(again.retryAt).toBe(14_000);
    expect(again.next).toEqual([]);
    expect(describeNote(note("model.failed", { model: "a/b", trouble: TROUBLE, attempt: 3 }))).toMatchObject({ retryAt: 0, next: ["wait"] });
    expect([secondsUntil(14_000, 10_001), secondsUntil(14_000, 13_999), secondsUntil(14_000, 15_000)]).toEqual([4, 1, 0]);
  });

  it("shows paths as code, whatever is in them", () => {
    const said = describeNote(note("files.restored", { undo: "u1", restored: ["a`<img src=x>`\n# b"] }));
    expect(said.text).toBe("1 file was put back.");
    expect(said.more).toBe("- `` a'<img src=x>' # b ``");
  });
});
