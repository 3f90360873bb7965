/** Rules, as the server tells and takes them. */

import type { PermissionRule } from "../../log/events";

export interface RuleView {
  from: "config" | "remembered" | "project";
  number: number | null;
  rule: PermissionRule;
  told: string;
  heeded: boolean;
}

export interface PolicyView {
  rules: RuleView[];
  project: string;
  trouble: string;
}

export interface DecisionStep {
  by: string;
  decision: string;
  reason: string;
}

export interface DecisionReport {
  tool: string;
  mode: string;
  effect: string;
  risk: string;
  why: string;
  reads: string[];
  writes: string[];
  hosts: string[];
  commands: string[];
  decision: string;
  reason: string;
  by: string;
  path: DecisionStep[];
}

export interface SessionGrant {
  session: string;
  number: number;
  rule: PermissionRule;
  told: string;
}

/** The order in which one remembered rule has moved by one; null where it cannot. */
export function moveRule(rules: readonly RuleView[], number: number, by: -1 | 1): number[] | null {
  const order = rules.map((one) => one.number).filter((each) => each !== null);
  const at = order.indexOf(number);
  const to = at + by;
  if (at < 0 || to < 0 || to >= order.length) return null;
  return order.toSpliced(at, 1).toSpliced(to, 0, number);
}

/** Arguments as somebody wrote them; undefined where they are no object. */
export function parseCallArguments(text: string): Record<string, unknown> | undefined {
  if (!text.trim()) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** A first try at arguments: those that a call needs, empty. */
export function blankArguments(schema: unknown): string {
  const told = schema as { properties?: Record<string, { type?: string }>; required?: string[] } | null;
  const needed = told?.required ?? [];
  const emptyValue = (type: string | undefined): unknown => (type === "integer" || type === "number" ? 0 : type === "boolean" ? false : type === "array" ? [] : type === "object" ? {} : "");
  return JSON.stringify(Object.fromEntries(needed.map((name) => [name, emptyValue(told?.properties?.[name]?.type)])), null, 2);
}
