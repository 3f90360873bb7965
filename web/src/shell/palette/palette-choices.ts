/** What the palette shows for what was typed: things to do here, things to do anywhere, pages, sessions. */

import type { SessionSummary } from "../../state/app-state.svelte";
import type { PaletteAction } from "../../state/shell-state.svelte";
import { sessionTitle } from "../../text/titles";
import { words } from "../../words";
import { bestMatches } from "./fuzzy-match";

export type PaletteSection = "here" | "acts" | "pages" | "sessions";

export interface PaletteChoice {
  section: PaletteSection;
  name: string;
  /** What stands at the right. */
  more: string;
  run: () => unknown;
}

export interface PaletteSources {
  here: PaletteAction[];
  acts: PaletteAction[];
  pages: PaletteAction[];
  /** The latest first. */
  sessions: SessionSummary[];
  open: (row: SessionSummary) => unknown;
  more: (row: SessionSummary) => string;
  inside: (text: string) => unknown;
}

const MAX_CHOICES = { here: 8, acts: 8, pages: 8, sessions: 30 };

export function buildPaletteChoices(from: PaletteSources, typed: string): PaletteChoice[] {
  const toChoices = (section: "here" | "acts" | "pages", list: PaletteAction[]): PaletteChoice[] =>
    bestMatches(list, (one) => one.name, typed, MAX_CHOICES[section]).map((one) => ({ section, name: one.name, more: one.keys ?? "", run: one.run }));
  const sessions = bestMatches(from.sessions, (row) => sessionTitle(row.title), typed, typed.trim() ? MAX_CHOICES.sessions : 8);
  const made = [
    ...toChoices("here", from.here),
    ...(typed.trim() ? [] : sessionChoices(sessions, from)),
    ...toChoices("pages", from.pages),
    ...toChoices("acts", from.acts),
    ...(typed.trim() ? sessionChoices(sessions, from) : []),
  ];
  const text = typed.trim();
  if (text) made.push({ section: "acts", name: words.palette.inside(text), more: "", run: () => from.inside(text) });
  return made;
}

function sessionChoices(list: SessionSummary[], from: PaletteSources): PaletteChoice[] {
  return list.map((row) => ({ section: "sessions", name: sessionTitle(row.title), more: from.more(row), run: () => from.open(row) }));
}
