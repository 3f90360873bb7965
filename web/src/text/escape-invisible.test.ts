import { expect, it } from "vitest";

import { escapeInJson, escapeInvisible, escapeToLine } from "./escape-invisible";

it("leaves what can be read as it is", () => {
  for (const text of ["", "plain", "ü 漢字 עברית", "a\tb\nc", "👩‍👩‍👧 family", "می‌خواهم".replace("\u200c", "")]) expect(escapeInvisible(text)).toBe(text);
});

it("shows what would turn the writing, and what nobody would see", () => {
  expect(escapeInvisible("cod\u202egnp.exe")).toBe("cod\\u202egnp.exe");
  expect(escapeInvisible("a\u200bb\u2066c\u{e0041}d\x1b[31m\x85")).toBe("a\\u200bb\\u2066c\\u{e0041}d\\x1b[31m\\x85");
  expect(escapeInvisible("r\u200dm")).toBe("r\\u200dm");
});

it("keeps a name on one line", () => {
  expect(escapeToLine("new\nline\tand\rmore")).toBe("new\\nline\\tand\\rmore");
});

it("is the same value in JSON", () => {
  const value = { text: "a\u202eb\u{e0041}c\x85\x7f" };
  const shown = escapeInJson(JSON.stringify(value));
  expect(shown).toBe(escapeInvisible(shown));
  expect(JSON.parse(shown)).toEqual(value);
});
