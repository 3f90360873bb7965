/** What was spent, as a chart and as a table: every day of the span, each model a part of the day. */

export interface DailyCost {
  day: string;
  model: string;
  calls: number;
  input: number;
  output: number;
  cost: number;
  unpriced: number;
}

export type SpendingMeasure = "cost" | "tokens";

export interface SpendingSeries {
  days: string[];
  series: { label: string; values: number[] }[];
}

/** So many models are told apart; the rest is one. */
export const MAX_SERIES = 7;

/** The last `count` days up to now, as the server names them. */
export function listDaysUntil(now: number, count: number): string[] {
  // Counted by the calendar: a day in which the clock is changed has 23 or 25 hours.
  const today = new Date(now);
  return Array.from({ length: count }, (_, at) => formatDay(new Date(today.getFullYear(), today.getMonth(), today.getDate() - (count - 1 - at), 12).getTime()));
}

export function formatDay(ts: number): string {
  const date = new Date(ts);
  const padTwo = (part: number): string => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${padTwo(date.getMonth() + 1)}-${padTwo(date.getDate())}`;
}

/** Days without anything are days, too: an axis that leaves them out would lie. */
export function buildSpendingSeries(rows: readonly DailyCost[], days: string[], measure: SpendingMeasure, other: string): SpendingSeries {
  const measureRow = (row: DailyCost): number => (measure === "cost" ? row.cost : row.input + row.output);
  const all = [...new Set([...days, ...rows.map((row) => row.day)])].sort();
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(row.model, (totals.get(row.model) ?? 0) + measureRow(row));
  const models = [...totals].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([model]) => model);
  const apart = models.length > MAX_SERIES ? models.slice(0, MAX_SERIES - 1) : models;
  const names = apart.length < models.length ? [...apart, other] : apart;
  const at = new Map(all.map((day, index) => [day, index]));
  const series = names.map((label) => ({ label, values: all.map(() => 0) }));
  for (const row of rows) {
    const one = series[apart.indexOf(row.model)] ?? series.at(-1);
    const index = at.get(row.day) ?? 0;
    if (one) one.values[index] = (one.values[index] ?? 0) + measureRow(row);
  }
  return { days: all, series };
}

export interface ModelTotal {
  model: string;
  calls: number;
  tokens: number;
  cost: number;
  unpriced: number;
  /** Of all, from 0 to 1. */
  share: number;
}

export function sumByModel(rows: readonly DailyCost[]): ModelTotal[] {
  const sums = new Map<string, ModelTotal>();
  for (const row of rows) {
    const sum = sums.get(row.model) ?? { model: row.model, calls: 0, tokens: 0, cost: 0, unpriced: 0, share: 0 };
    sums.set(row.model, sum);
    sum.calls += row.calls;
    sum.tokens += row.input + row.output;
    sum.cost += row.cost;
    sum.unpriced += row.unpriced;
  }
  const list = [...sums.values()];
  const cost = list.reduce((all, one) => all + one.cost, 0);
  const tokens = list.reduce((all, one) => all + one.tokens, 0);
  for (const one of list) one.share = cost ? one.cost / cost : tokens ? one.tokens / tokens : 0;
  return list.sort((a, b) => b.cost - a.cost || b.tokens - a.tokens);
}
