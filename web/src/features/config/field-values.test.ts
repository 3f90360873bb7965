import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { FieldKind } from "./config-schema";
import { explainInvalid, formatValue, parseValue, toInputText } from "./field-values";

const WHOLE: FieldKind = { is: "number", whole: true, least: 1, most: 65535 };
const SHARE: FieldKind = { is: "number", whole: false, above: 0, below: 1 };
const TEXT: FieldKind = { is: "text", shortest: 0, longest: Infinity, pattern: "" };
const URL: FieldKind = { is: "text", shortest: 1, longest: 20, pattern: "^https?://[^/]+$" };
const LIST: FieldKind = { is: "list", of: TEXT };
const RULES: FieldKind = {
  is: "rows",
  columns: [
    { key: "decision", label: "Decision", about: "", kind: { is: "choice", of: ["allow", "deny"] }, fallback: null, needed: true },
    { key: "tool", label: "Tool", about: "", kind: TEXT, fallback: "*", needed: false },
  ],
};

describe("what is typed", () => {
  it("is a number only if it is one, within its bounds", () => {
    expect(parseValue(WHOLE, "250")).toEqual({ value: 250, problem: "" });
    expect(parseValue(WHOLE, "")).toEqual({ value: null, problem: "" });
    for (const bad of ["0", "65536", "1.5", "many", "1e999", "0x10", "1,5", "--1", "NaN"]) expect(parseValue(WHOLE, bad).problem, bad).not.toBe("");
    for (const bad of ["0", "1", "-0.1"]) expect(parseValue(SHARE, bad).problem, bad).not.toBe("");
    expect(parseValue(SHARE, "0.75").problem).toBe("");
  });

  it("is text as it stands, checked by length and pattern", () => {
    expect(parseValue(URL, "https://a.example").problem).toBe("");
    for (const bad of ["", "ftp://x", "https://much-too-long.example.org"]) expect(parseValue(URL, bad).problem, bad).not.toBe("");
  });

  it("is a list with one entry per line", () => {
    expect(parseValue(LIST, " a \n\nb\n")).toEqual({ value: ["a", "b"], problem: "" });
    expect(parseValue({ is: "list", of: WHOLE }, "1\nx").problem).toContain("Entry 2");
  });

  it("comes back as it was", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 65535 }), (value) => void expect(parseValue(WHOLE, toInputText(value)).value).toBe(value)));
    const word = fc.string({ minLength: 1 }).filter((text) => text.trim() === text && !text.includes("\n"));
    fc.assert(fc.property(fc.array(word), (value) => void expect(parseValue(LIST, toInputText(value)).value).toEqual(value)));
  });
});

describe("a value", () => {
  it("of the wrong kind is told", () => {
    expect(explainInvalid({ is: "flag" }, "yes")).not.toBe("");
    expect(explainInvalid({ is: "choice", of: ["ask", "plan"] }, "trust")).toContain("ask, plan");
    expect(explainInvalid(RULES, [{ decision: "allow" }, { tool: "shell" }])).toContain("Entry 2: Decision");
    expect(explainInvalid(RULES, [{ decision: "maybe" }])).not.toBe("");
    expect(explainInvalid(RULES, [{ decision: "deny", tool: "shell" }])).toBe("");
  });

  it("is never anything but an answer", () => {
    fc.assert(fc.property(fc.anything(), fc.constantFrom(WHOLE, SHARE, TEXT, URL, LIST, RULES), (value, kind) => void expect(typeof explainInvalid(kind, value)).toBe("string")));
  });

  it("is shown in words", () => {
    expect([formatValue(null), formatValue(""), formatValue([]), formatValue(true), formatValue(["a", "b"]), formatValue(3)]).toEqual(["nothing", "nothing", "none", "on", "a, b", "3"]);
  });
});
