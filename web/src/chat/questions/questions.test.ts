import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { Asked } from "../../log/events";
import type { SessionQuestion } from "../../log/session";
import { describeAnswer, describeRule, findOvertakenQuestions, groupQuestions, listApprovalChoices, parseArguments } from "./questions";

const ASKED: Asked = { id: "t1_q1", kind: "approval", question: "May write run?", call: "t1_c1" };

function question(asked: Partial<Asked> = {}, more: Partial<SessionQuestion> = {}): SessionQuestion {
  return { seq: 1, ts: 1, asked: { ...ASKED, ...asked }, answer: "", reason: "", by: "", via: "", open: true, turn: "t1", ...more };
}

describe("choicesOf", () => {
  it("offers what was asked with, in one order", () => {
    expect(listApprovalChoices({ ...ASKED, choices: ["no", "edit", "yes"] })).toEqual(["yes", "edit", "no"]);
  });

  it("offers yes and no where nothing was said", () => {
    expect(listApprovalChoices(ASKED)).toEqual(["yes", "no"]);
  });
});

describe("told", () => {
  it("says what a rule allows, and how long", () => {
    expect(describeRule({ decision: "allow", tool: "write", path: "src/**", until: "2030-01-31" })).toBe("Allow write: files in src/** until 2030-01-31");
    expect(describeRule({ decision: "deny", host: "example.org" })).toBe("Deny any tool: the host example.org");
    expect(describeRule({ decision: "allow", tool: "shell", digest: "abc" })).toBe("Allow shell: exactly this call");
  });
});

describe("checked", () => {
  it("takes an object, and nothing else", () => {
    expect(parseArguments('{"path": "a"}')).toEqual({ ok: true, value: { path: "a" } });
    for (const wrong of ["", "{", "[1]", "null", '"a"', "{}"]) expect(parseArguments(wrong).ok, wrong).toBe(false);
  });

  it("takes whatever object was written as JSON", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue(), { minKeys: 1 }), (value) => {
        const made = JSON.stringify(value, null, 2);
        expect(parseArguments(made)).toEqual({ ok: true, value: JSON.parse(made) });
      }),
    );
  });
});

describe("grouped", () => {
  it("puts questions of one call together, and leaves approvals alone", () => {
    const ask = (id: string): SessionQuestion => question({ id, kind: "question", call: "c1" });
    const groups = groupQuestions([ask("q1"), question({ id: "q2" }), ask("q3"), question({ id: "q4" })]);
    expect(groups.map((group) => group.map((one) => one.asked.id))).toEqual([["q1", "q3"], ["q2"], ["q4"]]);
  });
});

describe("overtaken", () => {
  it("finds what was answered elsewhere while something was written to it", () => {
    const all = new Map([question({ id: "q1" }, { open: false }), question({ id: "q2" }), question({ id: "q3" }, { open: false }), question({ id: "q4" }, { open: false })].map((one) => [one.asked.id, one]));
    const begun = new Map([["q1", "because"], ["q2", "since"], ["q3", "mine"]]);
    expect(findOvertakenQuestions(all, begun, new Set(["q3"])).map((one) => one.asked.id)).toEqual(["q1"]);
  });
});

describe("settled", () => {
  it("tells who said what, and why", () => {
    expect(describeAnswer(question({}, { answer: "no", by: "user", reason: "not there" }))).toBe("You: denied (not there)");
    expect(describeAnswer(question({}, { answer: "yes", by: "laptop" }))).toBe("laptop: allowed once");
    expect(describeAnswer(question({ kind: "question" }, { answer: "blue", by: "user" }))).toBe("You: “blue”");
  });

  it("tells with which credential it came", () => {
    expect(describeAnswer(question({}, { answer: "yes", by: "user", via: "phone" }))).toBe("You (with “phone”): allowed once");
    expect(describeAnswer(question({}, { answer: "yes", by: "phone", via: "phone" }))).toBe("phone: allowed once");
  });

  it("tells that nobody did", () => {
    expect(describeAnswer(question({}, { open: false }))).toBe("Nobody answered in time.");
    expect(describeAnswer(question({}, { answer: "no", by: "nobody" }))).toBe("Nobody was there to answer.");
  });
});
