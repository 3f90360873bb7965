import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { brief, given, pretty, untold } from "./tool-call-text";

describe("brief", () => {
  it("takes the argument that tells most", () => {
    expect(brief({ arguments: '{"timeout": 3, "cwd": "src", "command": "ls -l\\necho"}' })).toBe("ls -l");
    expect(brief({ arguments: '{"what": "this"}' })).toBe("this");
    expect(brief({ arguments: '{"count": 3}' })).toBe("");
  });

  it("tells what is looked for, and where", () => {
    expect(brief({ arguments: '{"path": ".", "pattern": "TODO"}' })).toBe("TODO");
    expect(brief({ arguments: '{"pattern": "TODO", "path": "src"}' })).toBe("TODO in src");
  });

  it("bears whatever a model writes", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(brief({ arguments: text }).includes("\n")).toBe(false);
        expect(given(text)).toBeInstanceOf(Array);
        expect(typeof pretty(text)).toBe("string");
      }),
    );
  });
});

describe("untold", () => {
  const trouble = { kind: "missing", message: "There is no a.", next: ["List the folder."] };

  it("repeats nothing that the output says", () => {
    expect(untold({ state: "failed", trouble, output: "" })).toEqual({ message: "There is no a.", next: ["List the folder."] });
    expect(untold({ state: "failed", trouble, output: "Error (missing): There is no a.\nNext: List the folder." })).toEqual({ message: "", next: [] });
  });

  it("leaves a refusal to who refused it", () => {
    expect(untold({ state: "refused", trouble, output: "" })).toEqual({ message: "", next: [] });
  });
});

describe("given", () => {
  it("shows short values in line and long ones as blocks", () => {
    expect(given('{"path": "a", "content": "x\\ny", "deep": {"a": 1}}')).toEqual([
      { name: "path", text: "a", long: false },
      { name: "content", text: "x\ny", long: true },
      { name: "deep", text: '{\n  "a": 1\n}', long: true },
    ]);
    expect(given("{}")).toEqual([]);
    expect(given('{"cut off')).toEqual([{ name: "", text: '{"cut off', long: true }]);
  });
});
