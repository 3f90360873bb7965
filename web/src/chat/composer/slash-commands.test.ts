import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { COMMAND_NAMES, completeCommand, guessCommand, parseCommandLine, parseDollars, SLASH_COMMANDS } from "./slash-commands";

describe("parse", () => {
  it("takes a command with its argument", () => {
    expect(parseCommandLine("/rename  A new title ")).toMatchObject({ name: "rename", argument: "A new title", command: { name: "rename" } });
    expect(parseCommandLine("/STOP")?.command?.name).toBe("stop");
    expect(parseCommandLine("/follow two\nlines")?.argument).toBe("two\nlines");
  });

  it("leaves what is no command to the model", () => {
    for (const text of ["hello", "/etc/passwd is what?", "see /help", "/ what", "//x", ""]) expect(parseCommandLine(text), text).toBeNull();
  });

  it("knows that there is no such command", () => {
    expect(parseCommandLine("/renmae x")).toMatchObject({ name: "renmae", command: null });
  });
});

describe("completions", () => {
  it("lists what the beginning may become", () => {
    expect(completeCommand("/").length).toBe(SLASH_COMMANDS.length);
    expect(completeCommand("/re").map((each) => each.name)).toEqual(["retry", "rename"]);
    expect(completeCommand("/rename x")).toEqual([]);
    expect(completeCommand("re")).toEqual([]);
  });

  it("finds every command by each of its beginnings", () => {
    fc.assert(
      fc.property(fc.constantFrom(...SLASH_COMMANDS.map((each) => each.name)), fc.nat(10), (name, length) => {
        expect(completeCommand(`/${name.slice(0, length)}`).map((each) => each.name)).toContain(name);
      }),
    );
  });
});

describe("guess", () => {
  it("finds what was meant, or nothing", () => {
    expect(guessCommand("renmae")).toBe("rename");
    expect(guessCommand("undoo")).toBe("undo");
    expect(guessCommand("frobnicate")).toBe("");
  });
});

describe("dollars", () => {
  it("reads sums", () => {
    expect(parseDollars("0.50")).toBe(500_000);
    expect(parseDollars("$12")).toBe(12_000_000);
    expect(parseDollars("none")).toBeNull();
    for (const wrong of ["", "a lot", "-1", "0", "1e9", "1,5"]) expect(parseDollars(wrong), wrong).toBeUndefined();
  });
});

it("has the commands of the terminal chat, where they make sense", () => {
  const source = readFileSync(join(import.meta.dirname, "../../../../src/sylph/interfaces/cli/chat/slash_commands.py"), "utf8");
  const terminal = [...source.matchAll(/^ {8}SlashCommand\(\s*"([a-z]+)"/gm)].map((found) => found[1] ?? "");
  expect(terminal.length).toBeGreaterThan(20);
  // One goes to another session by the list of them, and leaves by closing the page.
  expect(terminal.filter((name) => !COMMAND_NAMES.includes(name as never))).toEqual(["resume", "quit"]);
});
