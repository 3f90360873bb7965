import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { Kind } from "./config-schema";
import { read, shown, typed, wrong } from "./field-values";

const WHOLE: Kind = { is: "number", whole: true, least: 1, most: 65535 };
const SHARE: Kind = { is: "number", whole: false, above: 0, below: 1 };
const TEXT: Kind = { is: "text", shortest: 0, longest: Infinity, pattern: "" };
const URL: Kind = { is: "text", shortest: 1, longest: 20, pattern: "^https?://[^/]+$" };
const LIST: Kind = { is: "list", of: TEXT };
const RULES: Kind = {
  is: "rows",
  columns: [
    { key: "decision", label: "Decision", about: "", kind: { is: "choice", of: ["allow", "deny"] }, fallback: null, needed: true },
    { key: "tool", label: "Tool", about: "", kind: TEXT, fallback: "*", needed: false },
  ],
};

describe("what is typed", () => {
  it("is a number only if it is one, within its bounds", () => {
    expect(read(WHOLE, "250")).toEqual({ value: 250, problem: "" });
    expect(read(WHOLE, "")).toEqual({ value: null, problem: "" });
    for (const bad of ["0", "65536", "1.5", "many", "1e999", "0x10", "1,5", "--1", "NaN"]) expect(read(WHOLE, bad).problem, bad).not.toBe("");
    for (const bad of ["0", "1", "-0.1"]) expect(read(SHARE, bad).problem, bad).not.toBe("");
    expect(read(SHARE, "0.75").problem).toBe("");
  });

  it("is text as it stands, checked by length and pattern", () => {
    expect(read(URL, "https://a.example").problem).toBe("");
    for (const bad of ["", "ftp://x", "https://much-too-long.example.org"]) expect(read(URL, bad).problem, bad).not.toBe("");
  });

  it("is a list with one entry per line", () => {
    expect(read(LIST, " a \n\nb\n")).toEqual({ value: ["a", "b"], problem: "" });
    expect(read({ is: "list", of: WHOLE }, "1\nx").problem).toContain("Entry 2");
  });

  it("comes back as it was", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 65535 }), (value) => void expect(read(WHOLE, typed(value)).value).toBe(value)));
    const word = fc.string({ minLength: 1 }).filter((text) => text.trim() === text && !text.includes("\n"));
    fc.assert(fc.property(fc.array(word), (value) => void expect(read(LIST, typed(value)).value).toEqual(value)));
  });
});

describe("a value", () => {
  it("of the wrong kind is told", () => {
    expect(wrong({ is: "flag" }, "yes")).not.toBe("");
    expect(wrong({ is: "choice", of: ["ask", "plan"] }, "trust")).toContain("ask, plan");
    expect(wrong(RULES, [{ decision: "allow" }, { tool: "shell" }])).toContain("Entry 2: Decision");
    expect(wrong(RULES, [{ decision: "maybe" }])).not.toBe("");
    expect(wrong(RULES, [{ decision: "deny", tool: "shell" }])).toBe("");
  });

  it("is never anything but an answer", () => {
    fc.assert(fc.property(fc.anything(), fc.constantFrom(WHOLE, SHARE, TEXT, URL, LIST, RULES), (value, kind) => void expect(typeof wrong(kind, value)).toBe("string")));
  });

  it("is shown in words", () => {
    expect([shown(null), shown(""), shown([]), shown(true), shown(["a", "b"]), shown(3)]).toEqual(["nothing", "nothing", "none", "on", "a, b", "3"]);
  });
});
