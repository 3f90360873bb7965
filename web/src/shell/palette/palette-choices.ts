/** What the palette shows for what was typed: things to do here, things to do anywhere, pages, sessions. */

import type { Row } from "../../state/app-state.svelte";
import { words } from "../../words";
import { best } from "./fuzzy-match";
import type { Action } from "../../state/shell-state.svelte";
import { titleOf } from "../../text/titles";

export type Section = "here" | "acts" | "pages" | "sessions";

export interface Choice {
  section: Section;
  name: string;
  /** What stands at the right. */
  more: string;
  run: () => unknown;
}

export interface Sources {
  here: Action[];
  acts: Action[];
  pages: Action[];
  /** The latest first. */
  sessions: Row[];
  open: (row: Row) => unknown;
  more: (row: Row) => string;
  inside: (text: string) => unknown;
}

const MOST = { here: 8, acts: 8, pages: 8, sessions: 30 };

export function choices(from: Sources, typed: string): Choice[] {
  const of = (section: "here" | "acts" | "pages", list: Action[]): Choice[] =>
    best(list, (one) => one.name, typed, MOST[section]).map((one) => ({ section, name: one.name, more: one.keys ?? "", run: one.run }));
  const sessions = best(from.sessions, (row) => titleOf(row.title), typed, typed.trim() ? MOST.sessions : 8);
  const made = [
    ...of("here", from.here),
    ...(typed.trim() ? [] : rows(sessions, from)),
    ...of("pages", from.pages),
    ...of("acts", from.acts),
    ...(typed.trim() ? rows(sessions, from) : []),
  ];
  const text = typed.trim();
  if (text) made.push({ section: "acts", name: words.palette.inside(text), more: "", run: () => from.inside(text) });
  return made;
}

function rows(list: Row[], from: Sources): Choice[] {
  return list.map((row) => ({ section: "sessions", name: titleOf(row.title), more: from.more(row), run: () => from.open(row) }));
}
