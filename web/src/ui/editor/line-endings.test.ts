import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { language, preview, sign } from "./file-kinds";
import { edited, exact } from "./line-endings";

/** What the server makes of a text that replaces another. */
function dressed(text: string, was: string): string {
  const lines = was.split("\n").length - 1;
  const dos = was.split("\r\n").length - 1;
  return lines > 0 && dos === lines && !text.includes("\r") ? text.replace(/\n/g, "\r\n") : text;
}

describe("line ends", () => {
  it("survive being edited, whatever they are", () => {
    const text = fc.array(fc.constantFrom("a", "\n", "\r\n", "\r"), { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(fc.property(text, (was) => dressed(edited(was), was) === was));
  });

  it("are left as they are only where they must", () => {
    expect([exact("a\nb"), exact("a\r\nb"), exact("a"), exact("a\r\nb\n"), exact("a\rb")]).toEqual([false, false, false, true, true]);
  });
});

describe("kinds", () => {
  it("go by the end of the name", () => {
    expect([language("a.py"), language("A.MD"), language("x.tsx"), language("Makefile"), language(".json"), language("a.b/c")]).toEqual([
      "python", "markdown", "typescript", "", "", "",
    ]);
    expect([preview("a.md"), preview("a.svg"), preview("a.py")]).toEqual(["markdown", "picture", ""]);
    expect([sign("folder", "a"), sign("file", "a.png"), sign("file", "a")]).toEqual(["folder", "picture", "file"]);
  });
});
