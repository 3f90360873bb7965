/**
 * What to do next, for somebody in the app. The server tells it for every door at once, as commands and requests: where
 * the app has a way of its own, that is told instead, with a link.
 */

import { isPagePath } from "../features/registry";
import { pathOf } from "../state/router.svelte";
import { words } from "../words/hints";

export interface Hint {
  text: string;
  /** Where in the app that is done. */
  to?: string;
}

export interface Told {
  kind: string;
  next?: readonly string[];
  details?: Readonly<Record<string, string>>;
}

const settings = (...rest: string[]): string => pathOf("settings", ...rest);
const SERVICES: Hint = { text: words.services, to: settings("services") };
const LOOK: Hint = { text: words.servicesLook, to: settings("services") };
const MODELS: Hint = { text: words.models, to: settings("models") };
const DOCTOR: Hint = { text: words.doctor, to: settings("about") };
const CONFIG: Hint = { text: `${words.config}.`, to: settings("config") };
const RULES: Hint = { text: words.rules, to: settings("rules") };
const TOOLS: Hint = { text: words.tools, to: settings("tools") };
const IDENTITY: Hint = { text: words.identity, to: settings("identity") };
const ACCESS: Hint = { text: words.access, to: settings("access") };
const DASHBOARD: Hint = { text: words.dashboard, to: pathOf("dashboard") };
const FOLDERS: Hint = { text: words.folders, to: pathOf("files") };
const NOTHING: Hint = { text: "" };

/** Kinds whose hints are all for the command line. */
const KINDS: Record<string, (told: Told) => Hint[] | null> = {
  no_model: ({ details }) => (details?.["model"] ? null : [SERVICES, { text: words.local }]),
  no_service: () => [LOOK, DOCTOR, { text: words.another }],
  budget_spent: ({ details, next }) => budget(details?.["scope"] ?? "", next ?? []),
};

/** What stands for a command of the program, by its first words. */
const COMMANDS: Record<string, Hint | ((rest: string) => Hint)> = {
  "config set": (rest) => setting(rest),
  "config unset": (rest) => ({ text: words.unset(rest.split(/\s/)[0] ?? ""), to: groupOf(rest) }),
  config: CONFIG,
  connect: SERVICES,
  disconnect: SERVICES,
  doctor: DOCTOR,
  status: DASHBOARD,
  cost: DASHBOARD,
  roles: { text: words.roles, to: settings("models") },
  "models install": NOTHING,
  "models add": NOTHING,
  "models remove": NOTHING,
  models: MODELS,
  policy: RULES,
  tools: TOOLS,
  identity: IDENTITY,
  token: ACCESS,
  "session list": NOTHING,
  "session show": NOTHING,
  tour: NOTHING,
  undo: { text: words.undo },
  resume: (rest) => session(rest),
};

/** What stands for a request, by what it is about. */
const REQUESTS: Record<string, Hint> = {
  providers: LOOK,
  credentials: LOOK,
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
  sessions: NOTHING,
  stream: NOTHING,
  tasks: NOTHING,
};

/** Lines that speak of options, whatever the command. */
const OPTIONS: [RegExp, Hint][] = [
  [/--no-check\b/, { text: words.unchecked }],
  [/--force\b/, { text: words.force }],
  [/(^|\s)-m\b/, { text: words.another }],
  [/^leave out --/, NOTHING],
  [/--device\b/, NOTHING],
];

export function hints(told: Told): Hint[] {
  const made = KINDS[told.kind]?.(told) ?? (told.next ?? []).flatMap((line) => hint(line));
  const seen = new Set<string>();
  // Where a page is left out of the app, what it would be good for is left out as well.
  return made.filter(({ text, to }) => text && (!to || isPagePath(to)) && !seen.has(to ?? text) && seen.add(to ?? text));
}

function hint(line: string): Hint[] {
  const option = OPTIONS.find(([pattern]) => pattern.test(line));
  if (option) return [option[1]];
  const request = /\b(?:GET|POST|PUT|PATCH|DELETE) \/api\/v1\/(\w+)(?:\/([^\s/]+)\/restore)?/.exec(line);
  if (request?.[2]) return [{ text: words.restore, to: pathOf("chat", request[2]) }];
  if (request) return [REQUESTS[request[1] ?? ""] ?? { text: line }];
  const spoken = /^(.*?)`?\bsylph (-s \S+|[a-z]+)(?: ([a-z]+)\b)?([^`]*)/.exec(line);
  return spoken ? [command(line, spoken)] : [{ text: line }];
}

function command(line: string, [, before = "", one = "", two = "", rest = ""]: RegExpExecArray): Hint {
  if (one.startsWith("-s ")) return session(one.slice(3));
  const both = COMMANDS[`${one} ${two}`];
  const found = both ?? COMMANDS[one];
  if (found === undefined) return { text: line };
  const made = typeof found === "function" ? found((both ? rest : `${two}${rest}`).trim()) : found;
  // "or for all sessions: sylph …" says when that is the way.
  const when = /^[^`]*:\s*$/.test(before) ? before.trim() : "";
  return when && made.text ? { ...made, text: `${capital(when)} ${made.text}` } : made;
}

function setting(rest: string): Hint {
  const [, key = "", value = ""] = /^['"]?([^\s'"]+)['"]?\s*([^\s(]*)/.exec(rest) ?? [];
  return { text: words.set(key, /^[A-Z_]+$/.test(value) ? "" : value.replace(/^"|"$/g, "")), to: groupOf(key) };
}

function groupOf(key: string): string {
  const [group = ""] = key.trim().split(".");
  return settings("config", ...(/^[a-z_]+$/.test(group) && key.includes(".") ? [group] : []));
}

function session(id: string): Hint {
  const [first = ""] = id.split(/\s/);
  return /^[0-9a-z]{6,}$/.test(first) ? { text: words.goOn, to: pathOf("chat", first) } : { text: words.goOnHere };
}

function budget(scope: string, next: readonly string[]): Hint[] {
  const least = /--budget (\S+)/.exec(next.join("\n"))?.[1] ?? "";
  if (scope === "session" && least) return [{ text: words.raise(least) }];
  const set = next.flatMap((line) => hint(line)).filter((one) => one.to?.includes("/config"));
  if (scope === "turn") return [{ text: words.nextTurn }, ...set];
  return [...set, ...(scope === "day" || scope === "month" ? [{ text: words.wait(scope) }] : [{ text: words.goOnHere }])];
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
