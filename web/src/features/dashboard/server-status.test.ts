import { expect, it } from "vitest";

import { type BudgetStatus, budgetTone, formatBytes } from "./server-status";

it("writes sizes as people do", () => {
  expect([0, 999, 1000, 1_500_000, 123_456_789_012].map(formatBytes)).toEqual(["0 B", "999 B", "1.0 kB", "1.5 MB", "123 GB"]);
});

it("warns before a budget is used up", () => {
  expect([10, 80, 100, 140].map((percent) => budgetTone({ percent } as BudgetStatus))).toEqual(["good", "warn", "bad", "bad"]);
});
