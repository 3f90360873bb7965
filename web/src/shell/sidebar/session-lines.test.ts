import fc from "fast-check";
import { expect, it } from "vitest";

import type { Row } from "../../state/app-state.svelte";
import { beside, fits, type Line, lines, midnight, shelfOf, withPlaces } from "./session-lines";

const NOW = new Date(2026, 10, 16, 15, 0).getTime();

function row(id: string, more: Partial<Row> = {}): Row {
  return {
    id, title: id, workspace: "", model: "", mode: "ask", state: "idle", created: 0, updated: NOW, seq: 1, turns: 0, asked: 0,
    pinned: false, archived: false, deleted: false, unread: false, parent: "", interrupted: false, ...more,
  };
}

const keys = (list: Line[]): string[] => list.map((line) => line.key);

it("groups sessions: pinned, today, earlier; the latest first", () => {
  const made = [row("old", { updated: NOW - 3 * 86_400_000 }), row("new"), row("newer", { updated: NOW + 1 }), row("mine", { pinned: true, updated: 5 })];
  expect(keys(lines(made, "open", "", NOW))).toEqual(["head pinned", "mine", "head today", "newer", "new", "head earlier", "old"]);
});

it("shows what is put aside or deleted on its own shelf only", () => {
  const made = [row("a"), row("b", { archived: true }), row("c", { archived: true, deleted: true })];
  expect(keys(lines(made, "open", "", NOW))).toEqual(["head today", "a"]);
  expect(keys(lines(made, "archived", "", NOW))).toEqual(["b"]);
  expect(keys(lines(made, "deleted", "", NOW))).toEqual(["c"]);
});

it("finds titles by any of their words, in any case, with or without marks", () => {
  expect(fits("Über die Brücke", "brucke UBER")).toBe(true);
  expect(fits("Mend the parser", "parser lexer")).toBe(false);
  expect(keys(lines([row("Mend the parser"), row("Else")], "open", "  the mend ", NOW))).toEqual(["head found", "Mend the parser"]);
});

it("puts places in conversations after titles", () => {
  const place = { session: "s", title: "T", seq: 4, turn: "t1", ts: 1, role: "user", text: "words" };
  expect(keys(withPlaces([], [place]))).toEqual(["head inside", "s 4"]);
  expect(withPlaces([], [])).toEqual([]);
});

it("goes from session to session", () => {
  const list = lines([row("a", { updated: 3 }), row("b", { updated: 2 }), row("c", { updated: 1, pinned: true })], "open", "", NOW);
  expect([beside(list, "c", 1), beside(list, "a", 1), beside(list, "b", 1), beside(list, "", 1), beside(list, "", -1)]).toEqual(["a", "b", "", "c", "b"]);
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
        const shown = lines(rows, shelf, "", NOW).flatMap((one) => (one.kind === "row" ? [one.row.id] : []));
        expect(shown.toSorted()).toEqual(rows.filter((one) => shelfOf(one) === shelf).map((one) => one.id).toSorted());
      }
    }),
  );
  expect(midnight(NOW)).toBeLessThanOrEqual(NOW);
});
