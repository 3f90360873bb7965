/** What the server says of itself, for the dashboard. */

export interface BudgetStatus {
  scope: string;
  name: string;
  what: string;
  used: number;
  held: number;
  cap: number;
  percent: number;
}

export interface ServerStatus {
  version: string;
  uptime: number;
  workspace: string;
  model: string;
  sandbox: { enabled: boolean; said: string };
  providers: { name: string; reachable: boolean; models: number; trouble: string }[];
  bytes: number;
  sessions: number;
  turns: number;
  interrupted: { session: string; turn: string; title: string; task: string }[];
  undelivered: { session: string; id: string; title: string; attempts: number }[];
  budgets: BudgetStatus[];
  usage: { input: number; output: number };
  cost: number | null;
  restart: boolean;
  pending: string[];
  config_trouble: string;
}

export interface ServerHealth {
  status: string;
  store: { ok: boolean; writable: boolean; bytes: number; trouble: string };
  sandbox: string;
  disk_free: number;
  process: { memory: number };
}

/** How a budget stands: red once it is used up, a warning from four fifths on. */
export function budgetTone(budget: BudgetStatus): "good" | "warn" | "bad" {
  return budget.percent >= 100 ? "bad" : budget.percent >= 80 ? "warn" : "good";
}

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
