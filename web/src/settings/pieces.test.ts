import { describe, expect, it } from "vitest";

import { local, squares, unfit } from "./access/access";
import { bodyOf, differs, formOf, type GitView } from "./git/git";
import { price, searched, type Model } from "./models/models";
import { argumentsOf, blank, moved, type RuleView } from "./rules/rules";

const rule = (number: number | null): RuleView => ({ from: number ? "remembered" : "config", number, rule: { decision: "deny" }, told: "", heeded: true });
const GIT: GitView = { remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a", "b"], key: null, stored: true, repository: true };

describe("rules", () => {
  it("move by one among those that are remembered", () => {
    const rules = [rule(null), rule(1), rule(2), rule(3)];
    expect(moved(rules, 3, -1)).toEqual([1, 3, 2]);
    expect(moved(rules, 1, 1)).toEqual([2, 1, 3]);
    expect([moved(rules, 1, -1), moved(rules, 3, 1), moved(rules, 9, 1)]).toEqual([null, null, null]);
  });

  it("are asked about with an object", () => {
    expect(argumentsOf('{"command": "ls"}')).toEqual({ command: "ls" });
    expect(argumentsOf(" ")).toEqual({});
    for (const bad of ["[1]", "null", "{", '"x"']) expect(argumentsOf(bad), bad).toBeUndefined();
    expect(JSON.parse(blank({ required: ["command", "seconds"], properties: { command: { type: "string" }, seconds: { type: "number" } } }))).toEqual({ command: "", seconds: 0 });
    expect(blank(null)).toBe("{}");
  });
});

describe("credentials", () => {
  it("for hooks are for hooks only, and none are for nothing", () => {
    const say = { noScope: "none", hookAlone: "alone" };
    expect([unfit([], say), unfit(["hook", "read"], say), unfit(["hook"], say), unfit(["read", "chat"], say)]).toEqual(["none", "alone", "", ""]);
  });

  it("are drawn as squares, a run at a time", () => {
    expect(squares(["0110", "1001"])).toBe("M1 0h2v1h-2zM0 1h1v1h-1zM3 1h1v1h-1z");
    expect([local("http://127.0.0.1:8090/login#x"), local("https://sylph.home.example/login#x")]).toEqual([true, false]);
  });
});

describe("a git remote", () => {
  it("is sent whole, but the key only where there is a new one", () => {
    const form = formOf(GIT);
    expect(bodyOf({ ...form, hosts: " a \n\n" })).toEqual({ remote: "origin", url: "u", branch: "main", name: "", email: "", known_hosts: ["a"] });
    expect(bodyOf({ ...form, key: "PRIVATE" })).toMatchObject({ key: "PRIVATE" });
    expect([differs(form, GIT), differs({ ...form, branch: "x" }, GIT), differs({ ...form, key: "k" }, GIT)]).toEqual([false, true, true]);
  });
});

describe("models", () => {
  it("are found by all words, the default first; prices may be unknown", () => {
    const all: Model[] = [{ id: "a/small", provider: "a", default: false }, { id: "a/large", provider: "a", default: true }];
    expect(searched(all, "").map((one) => one.id)).toEqual(["a/large", "a/small"]);
    expect(searched(all, "A sm").map((one) => one.id)).toEqual(["a/small"]);
    expect([price(null), price(0), price(1_250_000)]).toEqual(["unknown", "free", "$1.25"]);
  });
});
