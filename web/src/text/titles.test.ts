import { expect, it } from "vitest";

import type { SessionSummary } from "../state/app-state.svelte";
import { countUnseen, sessionTitle, tabTitle } from "./titles";

it("says where one is and what waits", () => {
  expect(tabTitle("Dashboard", "Sylph", 0)).toBe("Dashboard · Sylph");
  expect(tabTitle("", "Sylph", 3)).toBe("(3) Sylph");
});

it("names a session in one line that hides nothing", () => {
  expect([sessionTitle(""), sessionTitle("a\nb\u202ec")]).toEqual(["Untitled", "a\\nb\\u202ec"]);
});

it("counts each session once that asks or is unread, and none that was put aside", () => {
  const row = (more: Partial<SessionSummary>): SessionSummary => ({ asked: 0, unread: false, deleted: false, archived: false, ...more }) as SessionSummary;
  expect(countUnseen([row({ asked: 2, unread: true }), row({ unread: true }), row({}), row({ unread: true, archived: true }), row({ asked: 1, deleted: true })])).toBe(2);
});
