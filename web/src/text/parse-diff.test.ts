import { createTwoFilesPatch } from "diff";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { hasDiff, parseDiffs } from "./parse-diff";

const PATCH = `--- a/src/one.py\t2026-01-01
+++ b/src/one.py\t2026-01-01
@@ -1,3 +1,3 @@
 first
-second
+the second
 third
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+only
\\ No newline at end of file
`;

describe("pieces", () => {
  it("tells files, lines and their numbers", () => {
    const [piece] = parseDiffs(PATCH);
    expect(piece?.files.map((file) => [file.path, file.added, file.removed])).toEqual([
      ["src/one.py", 1, 1],
      ["new.txt", 1, 0],
    ]);
    expect(piece?.files[0]?.lines).toEqual([
      { sign: "@", text: "@@ -1,3 +1,3 @@", old: 0, now: 0 },
      { sign: " ", text: "first", old: 1, now: 1 },
      { sign: "-", text: "second", old: 2, now: 0 },
      { sign: "+", text: "the second", old: 0, now: 2 },
      { sign: " ", text: "third", old: 3, now: 3 },
    ]);
  });

  it("names a removed file by what it was", () => {
    expect(parseDiffs("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye")[0]?.files[0]?.path).toBe("old.txt");
  });

  it("keeps what is said before and after a diff", () => {
    const found = parseDiffs(`would write:\n${PATCH}and then this`);
    expect(found.map((piece) => piece.text)).toEqual(["would write:", "and then this"]);
    expect(found[0]?.files).toHaveLength(2);
  });

  it("takes a removed line that looks like a head for what it is", () => {
    const [piece] = parseDiffs("--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/y\n+++ b/y");
    expect(piece?.files[0]?.removed).toBe(1);
    expect(piece?.files[0]?.added).toBe(1);
  });

  it("takes a new file for what it is, cut short or not", () => {
    const [piece] = parseDiffs("src/a.txt: new file, 42 lines\n+one\n+two\n… 40 more lines\nb.txt: new file, 1 line\n+x");
    expect(piece?.files.map((file) => [file.path, file.added, file.lines.length])).toEqual([
      ["src/a.txt", 42, 3],
      ["b.txt", 1, 1],
    ]);
  });

  it("leaves plain text alone", () => {
    expect(parseDiffs("would run in /work:\nls -l")).toEqual([{ text: "would run in /work:\nls -l", files: [] }]);
    expect(hasDiff("--- only a rule\n")).toBe(false);
    expect(parseDiffs("")).toEqual([]);
  });

  it("reads whatever a diff was made of, to the last line", () => {
    const content = fc.array(fc.stringMatching(/^[-+@ a-z\\]{0,6}$/), { maxLength: 12 }).map((lines) => lines.map((line) => `${line}\n`).join(""));
    fc.assert(
      fc.property(content, content, (before, after) => {
        fc.pre(before !== after);
        const files = parseDiffs(createTwoFilesPatch("a/f", "b/f", before, after).replace(/^=+\n/, "")).flatMap((piece) => piece.files);
        expect(files).toHaveLength(1);
        const side = (signs: string): string => (files[0]?.lines ?? []).filter((line) => signs.includes(line.sign)).map((line) => line.text).join("\n");
        for (const line of side(" +").split("\n")) expect(after.split("\n")).toContain(line);
        for (const line of side(" -").split("\n")) expect(before.split("\n")).toContain(line);
      }),
    );
  });
});
