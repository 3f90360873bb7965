/** Models as the server tells them. */

import { at, get } from "../../net/api";
import { money } from "../../text/format";
import { settingsWords } from "../settings/words";
import { modelsWords } from "./words";
import type { Trouble } from "../../log/events";

export interface Model {
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

export interface Assigned {
  role: string;
  model: string;
  from: string;
  work: string;
  unknown: string[];
}

export interface Tested {
  ok: boolean;
  text: string;
  ms: number;
  trouble?: Trouble | null;
}

export async function all(): Promise<Model[]> {
  const found: Model[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { items: Model[]; next: string | null } = await get(at`models?limit=1000&cursor=${cursor}`);
    found.push(...page.items);
    cursor = page.next;
  }
  return found;
}

/** Those whose name has all the words; the default first. */
export function searched(models: Model[], search: string): Model[] {
  const parts = search.toLowerCase().split(/\s+/);
  const fit = models.filter((one) => parts.every((part) => one.id.toLowerCase().includes(part)));
  return fit.sort((a, b) => Number(b.default) - Number(a.default));
}

/** Micro-dollars per million tokens; null is unknown. */
export function price(micro: number | null | undefined): string {
  if (micro === null || micro === undefined) return settingsWords.unknown;
  return micro === 0 ? modelsWords.free : money(micro);
}
