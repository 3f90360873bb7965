/** Models as the server tells them. */

import type { ErrorReport } from "../../log/events";
import { apiPath, getJson } from "../../net/api";
import { formatMoney } from "../../text/format";
import { settingsWords } from "../settings/words";
import { modelsWords } from "./words";

export interface ModelDetails {
  id: string;
  provider: string;
  default: boolean;
  window?: number | null;
  price_in?: number | null;
  price_out?: number | null;
  price_cached?: number | null;
  sees?: boolean | null;
  calls?: boolean | null;
}

export interface RoleAssignment {
  role: string;
  model: string;
  from: string;
  work: string;
  unknown: string[];
}

export interface ModelTestResult {
  ok: boolean;
  text: string;
  ms: number;
  trouble?: ErrorReport | null;
}

export async function fetchModels(): Promise<ModelDetails[]> {
  const found: ModelDetails[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { items: ModelDetails[]; next: string | null } = await getJson(apiPath`models?limit=1000&cursor=${cursor}`);
    found.push(...page.items);
    cursor = page.next;
  }
  return found;
}

/** Those whose name has all the words; the default first. */
export function searchModels(models: ModelDetails[], search: string): ModelDetails[] {
  const parts = search.toLowerCase().split(/\s+/);
  const fit = models.filter((one) => parts.every((part) => one.id.toLowerCase().includes(part)));
  return fit.sort((a, b) => Number(b.default) - Number(a.default));
}

/** Micro-dollars per million tokens; null is unknown. */
export function formatPrice(micro: number | null | undefined): string {
  if (micro === null || micro === undefined) return settingsWords.unknown;
  return micro === 0 ? modelsWords.free : formatMoney(micro);
}
