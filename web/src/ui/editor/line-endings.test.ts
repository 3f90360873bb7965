import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { editorLanguage, entryIcon, previewKind } from "./file-kinds";
import { hasMixedLineEnds, normalizeLineEnds } from "./line-endings";

/** What the server makes of a text that replaces another. */
function dressed(text: string, was: string): string {
  const lines = was.split("\n").length - 1;
  const dos = was.split("\r\n").length - 1;
  return lines > 0 && dos === lines && !text.includes("\r") ? text.replace(/\n/g, "\r\n") : text;
}

describe("line ends", () => {
  it("survive being edited, whatever they are", () => {
    const text = fc.array(fc.constantFrom("a", "\n", "\r\n", "\r"), { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(fc.property(text, (was) => dressed(normalizeLineEnds(was), was) === was));
  });

  it("are left as they are only where they must", () => {
    expect([hasMixedLineEnds("a\nb"), hasMixedLineEnds("a\r\nb"), hasMixedLineEnds("a"), hasMixedLineEnds("a\r\nb\n"), hasMixedLineEnds("a\rb")]).toEqual([false, false, false, true, true]);
  });
});

describe("kinds", () => {
  it("go by the end of the name", () => {
    expect([editorLanguage("a.py"), editorLanguage("A.MD"), editorLanguage("x.tsx"), editorLanguage("Makefile"), editorLanguage(".json"), editorLanguage("a.b/c")]).toEqual([
      "python", "markdown", "typescript", "", "", "",
    ]);
    expect([previewKind("a.md"), previewKind("a.svg"), previewKind("a.py")]).toEqual(["markdown", "picture", ""]);
    expect([entryIcon("folder", "a"), entryIcon("file", "a.png"), entryIcon("file", "a")]).toEqual(["folder", "picture", "file"]);
  });
});
