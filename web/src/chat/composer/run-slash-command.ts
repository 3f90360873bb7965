/** Slash commands, done. */

import type { Session } from "../../log/session";
import { Problem } from "../../net/api";
import { buildPath, router } from "../../state/router.svelte";
import { sessionTitle } from "../../text/titles";
import { app } from "../../state/app-state.svelte";
import { formatMoney, formatTokens } from "../../text/format";
import { words } from "../../words";
import * as acts from "../../net/session-api";
import type { ChatPageState } from "../chat-page-state.svelte";
import { SLASH_COMMANDS, parseDollars, guessCommand, type CommandLine, type CommandName } from "./slash-commands";

export interface CommandContext {
  desk: ChatPageState;
  session: Session;
  busy: boolean;
  /** Opens the picker of files. */
  pick: () => void;
}

const say = words.slash;

/** Does what a line asks for; returns whether the line is done with. */
export async function runSlashCommand(line: CommandLine, scene: CommandContext): Promise<boolean> {
  if (!line.command) {
    scene.desk.showNotice(say.unknown(line.name, guessCommand(line.name)), say.see);
    return false;
  }
  try {
    return (await HANDLERS[line.command.name](scene, line.argument)) !== false;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    app.fail(error);
    return false;
  }
}

/** Gives `false` where the line stays in the box. */
type CommandHandler = (scene: CommandContext, argument: string) => unknown;

const HANDLERS: Record<CommandName, CommandHandler> = {
  help: ({ desk }) => desk.showNotice(say.list, ...SLASH_COMMANDS.map((each) => `/${each.name} ${each.hint}`.trim() + `: ${each.help}`), words.composer.keysBusy),
  new: () => router.go(buildPath("chat")),
  sessions: () => document.getElementById("search")?.focus(),
  model: async ({ desk }, argument) => {
    if (!argument) desk.openDialog({ kind: "model" });
    else await acts.updateSession(desk.sessionId, { model: argument });
  },
  role: async ({ desk }, argument) => {
    const [name = "", model = ""] = argument.split(/\s+/, 2);
    if (!name) desk.openDialog({ kind: "roles" });
    else await acts.updateSession(desk.sessionId, { roles: { [name]: model } });
  },
  mode: async ({ desk, session }, argument) => {
    const names = Object.keys(words.mode);
    if (!argument) desk.showNotice(words.header.mode, words.mode[session.mode] ?? session.mode, names.join(", "));
    else if (!names.includes(argument)) return rejectCommand(desk, say.noMode(argument, names.join(", ")));
    else if (argument === "trust" && session.mode !== "trust") desk.openDialog({ kind: "trust" });
    else await acts.updateSession(desk.sessionId, { mode: argument });
    return true;
  },
  sandbox: async ({ desk, session }, argument) => {
    if (argument === "off") desk.openDialog({ kind: "unsafe" });
    else if (argument === "on") await acts.updateSession(desk.sessionId, { sandbox: true });
    else desk.showNotice(session.sandbox ? words.header.sandboxOn : words.header.sandboxOff);
  },
  status: ({ desk, session }) =>
    desk.showNotice(
      sessionTitle(session.title),
      `${words.header.model}: ${session.model}`,
      `${words.header.mode}: ${words.mode[session.mode] ?? session.mode}`,
      session.sandbox ? words.header.sandboxOn : words.header.sandboxOff,
      words.state[session.state] ?? session.state,
      `${words.header.workspace}: ${session.workspace}`,
      describeContext(session),
      describeSpending(session),
    ),
  plan: ({ desk, session }) =>
    session.plan.length
      ? desk.showNotice(words.plan.title, ...session.plan.map((step) => `${words.plan[step.status ?? "pending"]}: ${step.text}`))
      : desk.showNotice(say.noPlan),
  cost: ({ desk, session }) => desk.showNotice(words.header.cost, describeSpending(session)),
  budget: async ({ desk }, argument) => {
    if (!argument) return desk.openDialog({ kind: "budget" });
    const money = parseDollars(argument);
    if (money === undefined) return rejectCommand(desk, say.noSum);
    await acts.updateSession(desk.sessionId, { budget: money });
    return true;
  },
  compact: async ({ desk }) => void (await acts.controlSession(desk.sessionId, "compact")),
  retry: async ({ desk }, argument) => void (await acts.retryTurn(desk.sessionId, "", argument)),
  undo: ({ desk, busy }, argument) => {
    if (busy) return rejectCommand(desk, say.running, say.stopFirst);
    desk.openDialog({ kind: "undo", turn: argument === "redo" ? "" : argument, redo: argument === "redo" });
    return true;
  },
  fork: async ({ desk }, argument) => {
    if (argument && !/^\d+$/.test(argument)) return rejectMissingArgument(desk, "fork");
    const made = await acts.forkSession(desk.sessionId, argument ? Number(argument) : null);
    router.go(buildPath("chat", made.id));
    return true;
  },
  rename: async ({ desk }, argument) => {
    if (!argument) return rejectMissingArgument(desk, "rename");
    await acts.updateSession(desk.sessionId, { title: argument });
    return true;
  },
  attach: ({ pick }) => pick(),
  queue: async ({ desk, session }, argument) => {
    const id = argument.replace(/^drop\s*/, "");
    if (id) await acts.withdrawMessage(desk.sessionId, id);
    else desk.showNotice(words.queue.title, ...(session.queue.length ? session.queue.map((one) => `${one.id}: ${one.text}`) : [say.nothingWaits]));
  },
  follow: async ({ desk }, argument) => {
    if (!argument) return rejectMissingArgument(desk, "follow");
    await acts.sendMessage(desk.sessionId, { text: argument, delivery: "follow" });
    return true;
  },
  stop: async ({ desk, session, busy }) => {
    if (busy || session.state === "paused") await acts.controlSession(desk.sessionId, "cancel");
    else desk.showNotice(say.nothingRuns);
  },
  pause: async ({ desk }) => void (await acts.controlSession(desk.sessionId, "pause")),
  continue: async ({ desk }) => {
    try {
      await acts.controlSession(desk.sessionId, "resume");
    } catch (error) {
      if (!(error instanceof Problem) || error.kind !== "nothing_open") throw error;
      desk.showNotice(say.nothingHeld);
    }
  },
  drop: async ({ desk }) => void (await acts.controlSession(desk.sessionId, "drop")),
  dry: async ({ desk }, argument) => {
    if (!argument) return rejectMissingArgument(desk, "dry");
    await acts.sendMessage(desk.sessionId, { text: argument, dry_run: true });
    return true;
  },
  timeline: ({ desk }) => router.go(buildPath("timeline", desk.sessionId)),
  export: ({ desk }) => {
    const link = document.createElement("a");
    link.href = `/api/v1/sessions/${encodeURIComponent(desk.sessionId)}/export`;
    link.download = `${desk.sessionId}.ndjson`;
    link.click();
  },
};

function rejectCommand(desk: ChatPageState, title: string, ...lines: string[]): false {
  desk.showNotice(title, ...lines);
  return false;
}

function rejectMissingArgument(desk: ChatPageState, name: CommandName): false {
  return rejectCommand(desk, say.missing(`/${name} ${say.commands[name].hint}`));
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
