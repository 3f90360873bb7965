import fc from "fast-check";
import { expect, it } from "vitest";

import { buildSpendingSeries, type DailyCost, formatDay, listDaysUntil, MAX_SERIES, sumByModel } from "./spending";

const row = (day: string, model: string, cost: number, calls = 1): DailyCost => ({ day, model, calls, input: 10, output: 5, cost, unpriced: 0 });

it("shows every day, also those without anything", () => {
  const days = listDaysUntil(new Date(2026, 2, 2, 12).getTime(), 3);
  expect(days).toEqual(["2026-02-28", "2026-03-01", "2026-03-02"]);
  const made = buildSpendingSeries([row("2026-03-01", "a", 5), row("2026-03-01", "b", 7)], days, "cost", "others");
  expect(made).toEqual({ days, series: [{ label: "b", values: [0, 7, 0] }, { label: "a", values: [0, 5, 0] }] });
  expect(buildSpendingSeries([row("2026-03-01", "a", 5)], days, "tokens", "others").series).toEqual([{ label: "a", values: [0, 15, 0] }]);
});

it("leaves no day out where the clock is changed", () => {
  const zone = process.env["TZ"];
  process.env["TZ"] = "Europe/Berlin";
  try {
    expect(listDaysUntil(new Date(2026, 2, 31, 0, 30).getTime(), 5)).toEqual(["2026-03-27", "2026-03-28", "2026-03-29", "2026-03-30", "2026-03-31"]);
    expect(listDaysUntil(new Date(2026, 9, 26, 23, 30).getTime(), 3)).toEqual(["2026-10-24", "2026-10-25", "2026-10-26"]);
  } finally {
    process.env["TZ"] = zone;
  }
});

it("takes many models together, and loses nothing of them", () => {
  const some = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 4 }), fc.nat(1000)), { maxLength: 60 });
  fc.assert(
    fc.property(some, (made) => {
      const rows = made.map(([model, day, cost]) => row(`2026-03-0${day + 1}`, `m${model}`, cost));
      const shown = buildSpendingSeries(rows, [], "cost", "others");
      expect(shown.series.length).toBeLessThanOrEqual(MAX_SERIES);
      const sum = shown.series.flatMap((one) => one.values).reduce((all, one) => all + one, 0);
      expect(sum).toBe(rows.reduce((all, one) => all + one.cost, 0));
      expect(sumByModel(rows).reduce((all, one) => all + one.cost, 0)).toBe(sum);
    }),
  );
});

it("tells which model took which share; by tokens where nothing cost anything", () => {
  expect(sumByModel([row("d", "a", 1), row("d", "b", 3)]).map((one) => [one.model, one.share])).toEqual([["b", 0.75], ["a", 0.25]]);
  expect(sumByModel([row("d", "a", 0), row("e", "a", 0)])).toMatchObject([{ model: "a", share: 1, calls: 2 }]);
});

it("names days by the clock on the wall", () => {
  expect(formatDay(new Date(2026, 0, 5, 0, 1).getTime())).toBe("2026-01-05");
});
