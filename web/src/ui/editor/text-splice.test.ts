import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { spliceBetween } from "./text-splice";

describe("splice", () => {
  it("makes one text of the other", () => {
    const text = fc.array(fc.constantFrom("a", "b", "\n"), { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const { from, to, insert } = spliceBetween(before, after);
        expect(before.slice(0, from) + insert + before.slice(to)).toBe(after);
      }),
    );
    expect(spliceBetween("abc", "axc")).toEqual({ from: 1, to: 2, insert: "x" });
  });
});
