import { describe, expect, it } from "vitest";

import { blankArguments, moveRule, parseCallArguments, type RuleView } from "./policy-rules";

const rule = (number: number | null): RuleView => ({ from: number ? "remembered" : "config", number, rule: { decision: "deny" }, told: "", heeded: true });

describe("rules", () => {
  it("move by one among those that are remembered", () => {
    const rules = [rule(null), rule(1), rule(2), rule(3)];
    expect(moveRule(rules, 3, -1)).toEqual([1, 3, 2]);
    expect(moveRule(rules, 1, 1)).toEqual([2, 1, 3]);
    expect([moveRule(rules, 1, -1), moveRule(rules, 3, 1), moveRule(rules, 9, 1)]).toEqual([null, null, null]);
  });

  it("are asked about with an object", () => {
    expect(parseCallArguments('{"command": "ls"}')).toEqual({ command: "ls" });
    expect(parseCallArguments(" ")).toEqual({});
    for (const bad of ["[1]", "null", "{", '"x"']) expect(parseCallArguments(bad), bad).toBeUndefined();
    expect(JSON.parse(blankArguments({ required: ["command", "seconds"], properties: { command: { type: "string" }, seconds: { type: "number" } } }))).toEqual({ command: "", seconds: 0 });
    expect(blankArguments(null)).toBe("{}");
  });
});
