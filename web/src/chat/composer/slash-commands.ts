/** Slash commands: what there is, what a line means, and what could be meant by half of one. */

import { findFeature } from "../../features/registry";
import { words } from "../../words";

export const COMMAND_NAMES = [
  "help", "new", "sessions", "model", "role", "mode", "sandbox", "status", "plan", "cost", "budget", "compact", "retry", "undo", "fork",
  "rename", "attach", "queue", "follow", "stop", "pause", "continue", "drop", "dry", "timeline", "export",
] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

export interface SlashCommand {
  name: CommandName;
  hint: string;
  help: string;
}

/** Without those that open a page which is left out of the app. */
export const SLASH_COMMANDS: readonly SlashCommand[] = COMMAND_NAMES.filter((name) => name !== "timeline" || findFeature(name)).map((name) => ({ name, ...words.slash.commands[name] }));

export interface CommandLine {
  name: string;
  argument: string;
  /** None, where there is no such command. */
  command: SlashCommand | null;
}

/** A line that begins with a slash; a path in a sentence is none. */
export function parseCommandLine(text: string): CommandLine | null {
  const found = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(text.trim());
  if (!found) return null;
  const name = (found[1] ?? "").toLowerCase();
  return { name, argument: (found[2] ?? "").trim(), command: SLASH_COMMANDS.find((each) => each.name === name) ?? null };
}

/** What the beginning of a command may become. */
export function completeCommand(text: string): SlashCommand[] {
  const found = /^\/([a-z]*)$/i.exec(text);
  if (!found) return [];
  const begun = (found[1] ?? "").toLowerCase();
  return SLASH_COMMANDS.filter((each) => each.name.startsWith(begun));
}

/** The command somebody may have meant, for one that there is not. */
export function guessCommand(name: string): string {
  const near = SLASH_COMMANDS.map((each) => ({ name: each.name, far: editDistance(name, each.name) })).sort((a, b) => a.far - b.far)[0];
  return near && near.far <= 2 ? near.name : "";
}

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      const same = one[at - 1] === other[to - 1] ? 0 : 1;
      next.push(Math.min((row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1, (row[to - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

/** Dollars as somebody writes them, in micro-dollars; null for none, undefined for what is no sum. */
export function parseDollars(text: string): number | null | undefined {
  const said = text.trim().replace(/^\$/, "");
  if (said.toLowerCase() === "none") return null;
  if (!/^\d+(\.\d{1,6})?$/.test(said)) return undefined;
  const micro = Math.round(Number(said) * 1_000_000);
  return micro > 0 ? micro : undefined;
}
