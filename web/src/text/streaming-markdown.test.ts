import fc from "fast-check";
import { expect, it } from "vitest";

import { renderMarkdown } from "./markdown";
import { StreamingMarkdown } from "./streaming-markdown";

const TEXT = [
  "# A title",
  "A paragraph\nof two lines with **bold** words.",
  "- a list\n\n- that is loose\n  and goes on",
  "Behind it.",
  "```python\nx = 1\n\ny = 2\n```",
  "1. one\n2. two",
  "> a quote\n\nThe end.",
].join("\n\n");

function plain(made: string): string {
  return made.replace(/\s+/g, " ").replace(/> </g, "><").trim();
}

it("ends with what the whole text gives at once, however it grew", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 5, maxLength: 60 }), (sizes) => {
      const growing = new StreamingMarkdown();
      let at = 0;
      for (const size of sizes) growing.render(TEXT.slice(0, (at += size)));
      const made = growing.render(TEXT).map((block) => block.html).join("\n");
      expect(plain(made)).toBe(plain(renderMarkdown(TEXT)));
    }),
    { numRuns: 40 },
  );
});

it("renders a block that is whole once", () => {
  const growing = new StreamingMarkdown();
  const [first] = growing.render("One.\n\nTwo");
  const [again] = growing.render("One.\n\nTwo and three");
  expect(again).toBe(first);
});

it("begins anew where the text is another one", () => {
  const growing = new StreamingMarkdown();
  growing.render("One.\n\nTwo");
  expect(growing.render("Other").map((block) => plain(block.html))).toEqual(["<p>Other</p>"]);
});
