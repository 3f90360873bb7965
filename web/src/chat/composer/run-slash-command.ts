/** Slash commands, done. */

import type { Session } from "../../log/session";
import { Problem } from "../../net/api";
import * as sessionApi from "../../net/session-api";
import { app } from "../../state/app-state.svelte";
import { buildPath, router } from "../../state/router.svelte";
import { formatMoney, formatTokens } from "../../text/format";
import { sessionTitle } from "../../text/titles";
import { words } from "../../words";
import type { ChatPageState } from "../chat-page-state.svelte";
import { type CommandLine, type CommandName, guessCommand, parseDollars, SLASH_COMMANDS } from "./slash-commands";

export interface CommandContext {
  page: ChatPageState;
  session: Session;
  busy: boolean;
  /** Opens the picker of files. */
  pick: () => void;
}

const say = words.slash;

/** Does what a line asks for; returns whether the line is done with. */
export async function runSlashCommand(line: CommandLine, context: CommandContext): Promise<boolean> {
  if (!line.command) {
    context.page.showNotice(say.unknown(line.name, guessCommand(line.name)), say.see);
    return false;
  }
  try {
    return (await HANDLERS[line.command.name](context, line.argument)) !== false;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    app.showProblem(error);
    return false;
  }
}

/** Gives `false` where the line stays in the box. */
type CommandHandler = (context: CommandContext, argument: string) => unknown;

const HANDLERS: Record<CommandName, CommandHandler> = {
  help: ({ page }) => page.showNotice(say.list, ...SLASH_COMMANDS.map((each) => `/${each.name} ${each.hint}`.trim() + `: ${each.help}`), words.composer.keysBusy),
  new: () => router.go(buildPath("chat")),
  sessions: () => document.getElementById("search")?.focus(),
  model: async ({ page }, argument) => {
    if (!argument) page.openDialog({ kind: "model" });
    else await sessionApi.updateSession(page.sessionId, { model: argument });
  },
  role: async ({ page }, argument) => {
    const [name = "", model = ""] = argument.split(/\s+/, 2);
    if (!name) page.openDialog({ kind: "roles" });
    else await sessionApi.updateSession(page.sessionId, { roles: { [name]: model } });
  },
  mode: async ({ page, session }, argument) => {
    const names = Object.keys(words.mode);
    if (!argument) page.showNotice(words.header.mode, words.mode[session.mode] ?? session.mode, names.join(", "));
    else if (!names.includes(argument)) return rejectCommand(page, say.noMode(argument, names.join(", ")));
    else if (argument === "trust" && session.mode !== "trust") page.openDialog({ kind: "trust" });
    else await sessionApi.updateSession(page.sessionId, { mode: argument });
    return true;
  },
  sandbox: async ({ page, session }, argument) => {
    if (argument === "off") page.openDialog({ kind: "unsafe" });
    else if (argument === "on") await sessionApi.updateSession(page.sessionId, { sandbox: true });
    else page.showNotice(session.sandbox ? words.header.sandboxOn : words.header.sandboxOff);
  },
  status: ({ page, session }) =>
    page.showNotice(
      sessionTitle(session.title),
      `${words.header.model}: ${session.model}`,
      `${words.header.mode}: ${words.mode[session.mode] ?? session.mode}`,
      session.sandbox ? words.header.sandboxOn : words.header.sandboxOff,
      words.state[session.state] ?? session.state,
      `${words.header.workspace}: ${session.workspace}`,
      describeContext(session),
      describeSpending(session),
    ),
  plan: ({ page, session }) =>
    session.plan.length
      ? page.showNotice(words.plan.title, ...session.plan.map((step) => `${words.plan[step.status ?? "pending"]}: ${step.text}`))
      : page.showNotice(say.noPlan),
  cost: ({ page, session }) => page.showNotice(words.header.cost, describeSpending(session)),
  budget: async ({ page }, argument) => {
    if (!argument) return page.openDialog({ kind: "budget" });
    const money = parseDollars(argument);
    if (money === undefined) return rejectCommand(page, say.noSum);
    await sessionApi.updateSession(page.sessionId, { budget: money });
    return true;
  },
  compact: async ({ page }) => void (await sessionApi.controlSession(page.sessionId, "compact")),
  retry: async ({ page }, argument) => void (await sessionApi.retryTurn(page.sessionId, "", argument)),
  undo: ({ page, busy }, argument) => {
    if (busy) return rejectCommand(page, say.running, say.stopFirst);
    page.openDialog({ kind: "undo", turn: argument === "redo" ? "" : argument, redo: argument === "redo" });
    return true;
  },
  fork: async ({ page }, argument) => {
    if (argument && !/^\d+$/.test(argument)) return rejectMissingArgument(page, "fork");
    const made = await sessionApi.forkSession(page.sessionId, argument ? Number(argument) : null);
    router.go(buildPath("chat", made.id));
    return true;
  },
  rename: async ({ page }, argument) => {
    if (!argument) return rejectMissingArgument(page, "rename");
    await sessionApi.updateSession(page.sessionId, { title: argument });
    return true;
  },
  attach: ({ pick }) => pick(),
  queue: async ({ page, session }, argument) => {
    const id = argument.replace(/^drop\s*/, "");
    if (id) await sessionApi.withdrawMessage(page.sessionId, id);
    else page.showNotice(words.queue.title, ...(session.queue.length ? session.queue.map((one) => `${one.id}: ${one.text}`) : [say.nothingWaits]));
  },
  follow: async ({ page }, argument) => {
    if (!argument) return rejectMissingArgument(page, "follow");
    await sessionApi.sendMessage(page.sessionId, { text: argument, delivery: "follow" });
    return true;
  },
  stop: async ({ page, session, busy }) => {
    if (busy || session.state === "paused") await sessionApi.controlSession(page.sessionId, "cancel");
    else page.showNotice(say.nothingRuns);
  },
  pause: async ({ page }) => void (await sessionApi.controlSession(page.sessionId, "pause")),
  continue: async ({ page }) => {
    try {
      await sessionApi.controlSession(page.sessionId, "resume");
    } catch (error) {
      if (!(error instanceof Problem) || error.kind !== "nothing_open") throw error;
      page.showNotice(say.nothingHeld);
    }
  },
  drop: async ({ page }) => void (await sessionApi.controlSession(page.sessionId, "drop")),
  dry: async ({ page }, argument) => {
    if (!argument) return rejectMissingArgument(page, "dry");
    await sessionApi.sendMessage(page.sessionId, { text: argument, dry_run: true });
    return true;
  },
  timeline: ({ page }) => router.go(buildPath("timeline", page.sessionId)),
  export: ({ page }) => {
    const link = document.createElement("a");
    link.href = `/api/v1/sessions/${encodeURIComponent(page.sessionId)}/export`;
    link.download = `${page.sessionId}.ndjson`;
    link.click();
  },
};

function rejectCommand(page: ChatPageState, title: string, ...lines: string[]): false {
  page.showNotice(title, ...lines);
  return false;
}

function rejectMissingArgument(page: ChatPageState, name: CommandName): false {
  return rejectCommand(page, say.missing(`/${name} ${say.commands[name].hint}`));
}

export function describeContext(session: Session): string {
  const { context: used, window } = session;
  return window ? words.header.context(formatTokens(used), formatTokens(window), Math.round((used / window) * 100)) : words.header.contextUnknown(formatTokens(used));
}

export function describeSpending(session: Session): string {
  const { input, output, cached } = session.usage;
  const unknown = session.unpriced ? ` (${words.header.unpriced})` : "";
  return `${formatMoney(session.cost)}${unknown}, ${words.header.used(formatTokens(input), formatTokens(output), formatTokens(cached))}`;
}
