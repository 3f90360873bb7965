import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { findUntoldTrouble, formatArguments, listArguments, summarizeCall } from "./tool-call-text";

describe("brief", () => {
  it("takes the argument that tells most", () => {
    expect(summarizeCall({ arguments: '{"timeout": 3, "cwd": "src", "command": "ls -l\\necho"}' })).toBe("ls -l");
    expect(summarizeCall({ arguments: '{"what": "this"}' })).toBe("this");
    expect(summarizeCall({ arguments: '{"count": 3}' })).toBe("");
  });

  it("tells what is looked for, and where", () => {
    expect(summarizeCall({ arguments: '{"path": ".", "pattern": "TODO"}' })).toBe("TODO");
    expect(summarizeCall({ arguments: '{"pattern": "TODO", "path": "src"}' })).toBe("TODO in src");
  });

  it("bears whatever a model writes", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(summarizeCall({ arguments: text }).includes("\n")).toBe(false);
        expect(listArguments(text)).toBeInstanceOf(Array);
        expect(typeof formatArguments(text)).toBe("string");
      }),
    );
  });
});

describe("untold", () => {
  const trouble = { kind: "missing", message: "There is no a.", next: ["List the folder."] };

  it("repeats nothing that the output says", () => {
    expect(findUntoldTrouble({ state: "failed", trouble, output: "" })).toEqual({ message: "There is no a.", next: ["List the folder."] });
    expect(findUntoldTrouble({ state: "failed", trouble, output: "Error (missing): There is no a.\nNext: List the folder." })).toEqual({ message: "", next: [] });
  });

  it("leaves a refusal to who refused it", () => {
    expect(findUntoldTrouble({ state: "refused", trouble, output: "" })).toEqual({ message: "", next: [] });
  });
});

describe("given", () => {
  it("shows short values in line and long ones as blocks", () => {
    expect(listArguments('{"path": "a", "content": "x\\ny", "deep": {"a": 1}}')).toEqual([
      { name: "path", text: "a", long: false },
      { name: "content", text: "x\ny", long: true },
      { name: "deep", text: '{\n  "a": 1\n}', long: true },
    ]);
    expect(listArguments("{}")).toEqual([]);
    expect(listArguments('{"cut off')).toEqual([{ name: "", text: '{"cut off', long: true }]);
  });
});
