import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { COMMANDS, completions, dollars, guess, NAMES, parse } from "./slash-commands";

describe("parse", () => {
  it("takes a command with its argument", () => {
    expect(parse("/rename  A new title ")).toMatchObject({ name: "rename", argument: "A new title", command: { name: "rename" } });
    expect(parse("/STOP")?.command?.name).toBe("stop");
    expect(parse("/follow two\nlines")?.argument).toBe("two\nlines");
  });

  it("leaves what is no command to the model", () => {
    for (const text of ["hello", "/etc/passwd is what?", "see /help", "/ what", "//x", ""]) expect(parse(text), text).toBeNull();
  });

  it("knows that there is no such command", () => {
    expect(parse("/renmae x")).toMatchObject({ name: "renmae", command: null });
  });
});

describe("completions", () => {
  it("lists what the beginning may become", () => {
    expect(completions("/").length).toBe(COMMANDS.length);
    expect(completions("/re").map((each) => each.name)).toEqual(["retry", "rename"]);
    expect(completions("/rename x")).toEqual([]);
    expect(completions("re")).toEqual([]);
  });

  it("finds every command by each of its beginnings", () => {
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), fc.nat(10), (name, length) => {
        expect(completions(`/${name.slice(0, length)}`).map((each) => each.name)).toContain(name);
      }),
    );
  });
});

describe("guess", () => {
  it("finds what was meant, or nothing", () => {
    expect(guess("renmae")).toBe("rename");
    expect(guess("undoo")).toBe("undo");
    expect(guess("frobnicate")).toBe("");
  });
});

describe("dollars", () => {
  it("reads sums", () => {
    expect(dollars("0.50")).toBe(500_000);
    expect(dollars("$12")).toBe(12_000_000);
    expect(dollars("none")).toBeNull();
    for (const wrong of ["", "a lot", "-1", "0", "1e9", "1,5"]) expect(dollars(wrong), wrong).toBeUndefined();
  });
});

it("has the commands of the terminal chat, where they make sense", () => {
  const source = readFileSync(join(import.meta.dirname, "../../../../src/sylph/interfaces/cli/slash.py"), "utf8");
  const terminal = [...source.matchAll(/^ {8}Slash\("([a-z]+)"/gm)].map((found) => found[1] ?? "");
  expect(terminal.length).toBeGreaterThan(20);
  // One goes to another session by the list of them, and leaves by closing the page.
  expect(terminal.filter((name) => !NAMES.includes(name as never))).toEqual(["resume", "quit"]);
});
