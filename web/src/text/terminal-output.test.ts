import { describe, expect, it } from "vitest";

import { stripTerminalCodes } from "./terminal-output";

describe("plain", () => {
  it("drops colours, titles and bells", () => {
    expect(stripTerminalCodes("\x1b[31mred\x1b[0m \x1b]0;title\x07and\x07 \x1b[?25lmore")).toBe("red and more");
  });

  it("shows what was written last where a line was written over", () => {
    expect(stripTerminalCodes("10 %\r50 %\r100 %\ndone\r\n")).toBe("100 %\ndone\n");
  });

  it("leaves text alone", () => {
    expect(stripTerminalCodes("a\tb\nc [31m ü")).toBe("a\tb\nc [31m ü");
  });
});
