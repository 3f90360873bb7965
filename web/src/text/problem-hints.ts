/**
 * What to do next, for somebody in the app. The server tells it for every door at once, as commands and requests: where
 * the app has a way of its own, that is told instead, with a link.
 */

import { isPagePath } from "../features/registry";
import { buildPath } from "../state/router.svelte";
import { hintWords } from "../words/hints";

export interface Hint {
  text: string;
  /** Where in the app that is done. */
  to?: string;
}

export interface ProblemHints {
  kind: string;
  next?: readonly string[];
  details?: Readonly<Record<string, string>>;
}

const settingsPath = (...rest: string[]): string => buildPath("settings", ...rest);
const SERVICES: Hint = { text: hintWords.services, to: settingsPath("services") };
const SERVICE_STATUS: Hint = { text: hintWords.servicesLook, to: settingsPath("services") };
const MODELS: Hint = { text: hintWords.models, to: settingsPath("models") };
const DOCTOR: Hint = { text: hintWords.doctor, to: settingsPath("about") };
const CONFIG: Hint = { text: `${hintWords.config}.`, to: settingsPath("config") };
const RULES: Hint = { text: hintWords.rules, to: settingsPath("rules") };
const TOOLS: Hint = { text: hintWords.tools, to: settingsPath("tools") };
const IDENTITY: Hint = { text: hintWords.identity, to: settingsPath("identity") };
const ACCESS: Hint = { text: hintWords.access, to: settingsPath("access") };
const DASHBOARD: Hint = { text: hintWords.dashboard, to: buildPath("dashboard") };
const FOLDERS: Hint = { text: hintWords.folders, to: buildPath("files") };
const NO_HINT: Hint = { text: "" };

/** Kinds whose hints are all for the command line. */
const KINDS: Record<string, (told: ProblemHints) => Hint[] | null> = {
  no_model: ({ details }) => (details?.["model"] ? null : [SERVICES, { text: hintWords.local }]),
  no_service: () => [SERVICE_STATUS, DOCTOR, { text: hintWords.another }],
  budget_spent: ({ details, next }) => budgetHints(details?.["scope"] ?? "", next ?? []),
};

/** What stands for a command of the program, by its first words. */
const COMMANDS: Record<string, Hint | ((rest: string) => Hint)> = {
  "config set": (rest) => settingHint(rest),
  "config unset": (rest) => ({ text: hintWords.unset(rest.split(/\s/)[0] ?? ""), to: configPath(rest) }),
  config: CONFIG,
  connect: SERVICES,
  disconnect: SERVICES,
  doctor: DOCTOR,
  status: DASHBOARD,
  cost: DASHBOARD,
  roles: { text: hintWords.roles, to: settingsPath("models") },
  "models install": NO_HINT,
  "models add": NO_HINT,
  "models remove": NO_HINT,
  models: MODELS,
  policy: RULES,
  tools: TOOLS,
  identity: IDENTITY,
  token: ACCESS,
  "session list": NO_HINT,
  "session show": NO_HINT,
  tour: NO_HINT,
  undo: { text: hintWords.undo },
  resume: (rest) => resumeHint(rest),
};

/** What stands for a request, by what it is about. */
const REQUESTS: Record<string, Hint> = {
  providers: SERVICE_STATUS,
  credentials: SERVICE_STATUS,
  config: CONFIG,
  models: MODELS,
  roles: MODELS,
  policy: RULES,
  tools: TOOLS,
  doctor: DOCTOR,
  identity: IDENTITY,
  keys: ACCESS,
  links: ACCESS,
  workspaces: FOLDERS,
  sessions: NO_HINT,
  stream: NO_HINT,
  tasks: NO_HINT,
};

/** Lines that speak of options, whatever the command. */
const OPTIONS: [RegExp, Hint][] = [
  [/--no-check\b/, { text: hintWords.unchecked }],
  [/--force\b/, { text: hintWords.force }],
  [/(^|\s)-m\b/, { text: hintWords.another }],
  [/^leave out --/, NO_HINT],
  [/--device\b/, NO_HINT],
];

export function translateHints(told: ProblemHints): Hint[] {
  const made = KINDS[told.kind]?.(told) ?? (told.next ?? []).flatMap((line) => translateHint(line));
  const seen = new Set<string>();
  // Where a page is left out of the app, what it would be good for is left out as well.
  return made.filter(({ text, to }) => text && (!to || isPagePath(to)) && !seen.has(to ?? text) && seen.add(to ?? text));
}

function translateHint(line: string): Hint[] {
  const option = OPTIONS.find(([pattern]) => pattern.test(line));
  if (option) return [option[1]];
  const request = /\b(?:GET|POST|PUT|PATCH|DELETE) \/api\/v1\/(\w+)(?:\/([^\s/]+)\/restore)?/.exec(line);
  if (request?.[2]) return [{ text: hintWords.restore, to: buildPath("chat", request[2]) }];
  if (request) return [REQUESTS[request[1] ?? ""] ?? { text: line }];
  const spoken = /^(.*?)`?\bsylph (-s \S+|[a-z]+)(?: ([a-z]+)\b)?([^`]*)/.exec(line);
  return spoken ? [translateCommand(line, spoken)] : [{ text: line }];
}

function translateCommand(line: string, [, before = "", one = "", two = "", rest = ""]: RegExpExecArray): Hint {
  if (one.startsWith("-s ")) return resumeHint(one.slice(3));
  const both = COMMANDS[`${one} ${two}`];
  const found = both ?? COMMANDS[one];
  if (found === undefined) return { text: line };
  const made = typeof found === "function" ? found((both ? rest : `${two}${rest}`).trim()) : found;
  // "or for all sessions: sylph …" says when that is the way.
  const when = /^[^`]*:\s*$/.test(before) ? before.trim() : "";
  return when && made.text ? { ...made, text: `${capitalize(when)} ${made.text}` } : made;
}

function settingHint(rest: string): Hint {
  const [, key = "", value = ""] = /^['"]?([^\s'"]+)['"]?\s*([^\s(]*)/.exec(rest) ?? [];
  return { text: hintWords.set(key, /^[A-Z_]+$/.test(value) ? "" : value.replace(/^"|"$/g, "")), to: configPath(key) };
}

function configPath(key: string): string {
  const [group = ""] = key.trim().split(".");
  return settingsPath("config", ...(/^[a-z_]+$/.test(group) && key.includes(".") ? [group] : []));
}

function resumeHint(id: string): Hint {
  const [first = ""] = id.split(/\s/);
  return /^[0-9a-z]{6,}$/.test(first) ? { text: hintWords.goOn, to: buildPath("chat", first) } : { text: hintWords.goOnHere };
}

function budgetHints(scope: string, next: readonly string[]): Hint[] {
  const least = /--budget (\S+)/.exec(next.join("\n"))?.[1] ?? "";
  if (scope === "session" && least) return [{ text: hintWords.raise(least) }];
  const set = next.flatMap((line) => translateHint(line)).filter((one) => one.to?.includes("/config"));
  if (scope === "turn") return [{ text: hintWords.nextTurn }, ...set];
  return [...set, ...(scope === "day" || scope === "month" ? [{ text: hintWords.wait(scope) }] : [{ text: hintWords.goOnHere }])];
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
