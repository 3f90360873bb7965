import fc from "fast-check";
import { expect, it } from "vitest";

import type { SessionSummary } from "../../state/app-state.svelte";
import { appendMatches, buildLines, findAdjacentSession, matchesTitle, shelfOf, type SidebarLine, startOfDay } from "./session-lines";

const NOW = new Date(2026, 10, 16, 15, 0).getTime();

function row(id: string, more: Partial<SessionSummary> = {}): SessionSummary {
  return {
    id, title: id, workspace: "", model: "", mode: "ask", state: "idle", created: 0, updated: NOW, seq: 1, turns: 0, asked: 0,
    pinned: false, archived: false, deleted: false, unread: false, parent: "", interrupted: false, ...more,
  };
}

const keys = (list: SidebarLine[]): string[] => list.map((line) => line.key);

it("groups sessions: pinned, today, earlier; the latest first", () => {
  const made = [row("old", { updated: NOW - 3 * 86_400_000 }), row("new"), row("newer", { updated: NOW + 1 }), row("mine", { pinned: true, updated: 5 })];
  expect(keys(buildLines(made, "open", "", NOW))).toEqual(["head pinned", "mine", "head today", "newer", "new", "head earlier", "old"]);
});

it("shows what is put aside or deleted on its own shelf only", () => {
  const made = [row("a"), row("b", { archived: true }), row("c", { archived: true, deleted: true })];
  expect(keys(buildLines(made, "open", "", NOW))).toEqual(["head today", "a"]);
  expect(keys(buildLines(made, "archived", "", NOW))).toEqual(["b"]);
  expect(keys(buildLines(made, "deleted", "", NOW))).toEqual(["c"]);
});

it("finds titles by any of their words, in any case, with or without marks", () => {
  expect(matchesTitle("Über die Brücke", "brucke UBER")).toBe(true);
  expect(matchesTitle("Mend the parser", "parser lexer")).toBe(false);
  expect(keys(buildLines([row("Mend the parser"), row("Else")], "open", "  the mend ", NOW))).toEqual(["head found", "Mend the parser"]);
});

it("puts places in conversations after titles", () => {
  const place = { session: "s", title: "T", seq: 4, turn: "t1", ts: 1, role: "user", text: "words" };
  expect(keys(appendMatches([], [place]))).toEqual(["head inside", "s 4"]);
  expect(appendMatches([], [])).toEqual([]);
});

it("goes from session to session", () => {
  const list = buildLines([row("a", { updated: 3 }), row("b", { updated: 2 }), row("c", { updated: 1, pinned: true })], "open", "", NOW);
  expect([findAdjacentSession(list, "c", 1), findAdjacentSession(list, "a", 1), findAdjacentSession(list, "b", 1), findAdjacentSession(list, "", 1), findAdjacentSession(list, "", -1)]).toEqual(["a", "b", "", "c", "b"]);
});

it("loses no session and shows none twice", () => {
  const some = fc.array(
    fc.record({ pinned: fc.boolean(), archived: fc.boolean(), deleted: fc.boolean(), updated: fc.integer({ min: 0, max: NOW + 10 }) }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(some, (made) => {
      const rows = made.map((more, at) => row(`s${at}`, more));
      for (const shelf of ["open", "archived", "deleted"] as const) {
        const shown = buildLines(rows, shelf, "", NOW).flatMap((one) => (one.kind === "row" ? [one.row.id] : []));
        expect(shown.toSorted()).toEqual(rows.filter((one) => shelfOf(one) === shelf).map((one) => one.id).toSorted());
      }
    }),
  );
  expect(startOfDay(NOW)).toBeLessThanOrEqual(NOW);
});
