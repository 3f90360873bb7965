import { describe, expect, it } from "vitest";

import { buildPatch, findConflicts, findSettledEdits, indexValues, type SettingEdit, type SettingValue } from "./config-edits";

const value = (key: string, now: unknown, from = "default"): SettingValue => ({ key, value: now, from, secret: false, live: true });
const values = (...all: SettingValue[]): Map<string, SettingValue> => indexValues({ file: "/f", values: all, pending: [], trouble: "" });
const set = (to: unknown): SettingEdit => ({ value: to, problem: "", unset: false });
const unset: SettingEdit = { value: "ask", problem: "", unset: true };

describe("changes", () => {
  it("are sent as what is set and what is taken out", () => {
    expect(buildPatch([["mode", unset], ["limits.rounds", set(3)]])).toEqual({ set: { "limits.rounds": 3 }, unset: ["mode"] });
  });

  it("clash only where another one changed the same key to something else", () => {
    const before = values(value("mode", "ask"), value("model", ""), value("probe", true));
    const now = values(value("mode", "plan", "/f"), value("model", "a/b", "/f"), value("probe", true));
    const edits = new Map([["mode", set("trust")], ["model", set("a/b")], ["probe", set(false)]]);
    expect(findConflicts(edits, before, now)).toEqual([{ key: "mode", yours: set("trust"), before: "ask", theirs: "plan" }]);
    expect(findSettledEdits(edits, now)).toEqual(["model"]);
  });

  it("that take something out are done when another one took it out", () => {
    const before = values(value("mode", "plan", "/f"));
    const now = values(value("mode", "ask"));
    const edits = new Map([["mode", unset]]);
    expect(findConflicts(edits, before, now)).toEqual([]);
    expect(findSettledEdits(edits, now)).toEqual(["mode"]);
  });

  it("to a whole table clash with any change below it", () => {
    const before = values(value("providers.x.base_url", "http://a", "/f"));
    const now = values(value("providers.x.base_url", "http://b", "/f"));
    expect(findConflicts(new Map([["providers.x", unset]]), before, now).map((clash) => clash.key)).toEqual(["providers.x"]);
  });

  it("that are set to the default by hand are not taken for done", () => {
    expect(findSettledEdits(new Map([["mode", set("ask")]]), values(value("mode", "ask")))).toEqual([]);
  });
});
