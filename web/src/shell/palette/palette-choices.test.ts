import { expect, it } from "vitest";

import type { SessionSummary } from "../../state/app-state.svelte";
import { buildPaletteChoices, type PaletteSources } from "./palette-choices";

const act = (name: string): { name: string; run: () => string } => ({ name, run: () => name });
const row = (title: string): SessionSummary => ({ id: title, title }) as SessionSummary;
const FROM: PaletteSources = {
  here: [act("Stop the work")],
  acts: [act("Begin a new session"), act("Log out")],
  pages: [act("Go to Dashboard")],
  sessions: [row("Mend the parser"), row("Write a story"), row("")],
  open: (one) => one.id,
  more: () => "",
  inside: (text) => text,
};

it("shows everything that can be done where nothing is typed", () => {
  expect(buildPaletteChoices(FROM, "").map((one) => one.name)).toEqual([
    "Stop the work", "Mend the parser", "Write a story", "Untitled", "Go to Dashboard", "Begin a new session", "Log out",
  ]);
});

it("finds sessions, pages and things to do, and offers to look inside", () => {
  const found = buildPaletteChoices(FROM, "pars");
  expect(found.map((one) => one.name)).toEqual(["Mend the parser", "Search the conversations for “pars”"]);
  expect(found.map((one) => one.run())).toEqual(["Mend the parser", "pars"]);
  expect(buildPaletteChoices(FROM, "dash")[0]?.name).toBe("Go to Dashboard");
});

it("stays short however many sessions there are", () => {
  const many = Array.from({ length: 10_000 }, (_, at) => row(`session ${at}`));
  expect(buildPaletteChoices({ ...FROM, sessions: many }, "session").length).toBeLessThan(50);
});
