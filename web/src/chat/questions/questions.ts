/** What can be answered to a question, and what each answer would mean. */

import type { Asked, PermissionRule } from "../../log/events";
import type { SessionQuestion } from "../../log/session";
import { words } from "../../words";

export type ApprovalChoice = "yes" | "session" | "always" | "edit" | "no";
const APPROVAL_CHOICES: readonly ApprovalChoice[] = ["yes", "session", "always", "edit", "no"];

/** The answers an approval offers, in the order in which they are shown. */
export function listApprovalChoices(asked: Asked): ApprovalChoice[] {
  const offered = asked.choices?.length ? asked.choices : ["yes", "no"];
  return APPROVAL_CHOICES.filter((choice) => offered.includes(choice));
}

/** A rule as a sentence. */
export function describeRule(rule: PermissionRule): string {
  const about = [
    rule.path ? `${words.rule.path} ${rule.path}` : "",
    rule.command ? `${words.rule.command} ${rule.command}` : "",
    rule.host ? `${words.rule.host} ${rule.host}` : "",
    rule.digest ? words.rule.exactly : "",
  ].filter(Boolean);
  const what = `${words.rule[rule.decision]} ${rule.tool || words.rule.anything}`;
  return `${what}${about.length ? `: ${about.join(", ")}` : ""}${rule.until ? ` ${words.rule.until} ${rule.until}` : ""}`;
}

export type ParsedArguments = { ok: true; value: Record<string, unknown> } | { ok: false; why: string };

/** Arguments as somebody wrote them: an object, or why they are none. */
export function parseArguments(text: string): ParsedArguments {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, why: `${words.ask.badJson} ${error instanceof Error ? error.message : ""}`.trim() };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { ok: false, why: words.ask.noObject };
  if (!Object.keys(value).length) return { ok: false, why: words.ask.noArguments };
  return { ok: true, value: value as Record<string, unknown> };
}

/** Questions that were asked together: those of one call are answered at once. */
export function groupQuestions(questions: Iterable<SessionQuestion>): SessionQuestion[][] {
  const groups = new Map<string, SessionQuestion[]>();
  for (const question of questions) {
    const { kind, call, id } = question.asked;
    const name = kind === "question" && call ? call : id;
    groups.set(name, [...(groups.get(name) ?? []), question]);
  }
  return [...groups.values()];
}

/** Questions that are over although somebody had begun to answer them here. */
export function findOvertakenQuestions(questions: ReadonlyMap<string, SessionQuestion>, begun: ReadonlyMap<string, string>, mine: ReadonlySet<string>): SessionQuestion[] {
  return [...begun.keys()].flatMap((id) => questions.get(id) ?? []).filter((one) => !one.open && !mine.has(one.asked.id));
}

/** How a question ended, for a person. */
export function describeAnswer(question: SessionQuestion): string {
  if (!question.answer && !question.by) return words.ask.expired;
  if (question.by === "nobody") return words.ask.nobody;
  const said = question.asked.kind === "approval" ? (words.ask.said[question.answer] ?? question.answer) : `“${question.answer}”`;
  const who = words.ask.by(question.by || "user", question.via);
  return `${who}: ${said}${question.reason ? ` (${question.reason})` : ""}`;
}
