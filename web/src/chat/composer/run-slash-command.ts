/** Slash commands, done. */

import type { Session } from "../../log/session";
import { Problem } from "../../net/api";
import { pathOf, router } from "../../state/router.svelte";
import { titleOf } from "../../text/titles";
import { app } from "../../state/app-state.svelte";
import { money, tokens } from "../../text/format";
import { words } from "../../words";
import * as acts from "../../net/session-api";
import type { Desk } from "../chat-page-state.svelte";
import { COMMANDS, dollars, guess, type Line, type Name } from "./slash-commands";

export interface Scene {
  desk: Desk;
  session: Session;
  busy: boolean;
  /** Opens the picker of files. */
  pick: () => void;
}

const say = words.slash;

/** Does what a line asks for; returns whether the line is done with. */
export async function run(line: Line, scene: Scene): Promise<boolean> {
  if (!line.command) {
    scene.desk.say(say.unknown(line.name, guess(line.name)), say.see);
    return false;
  }
  try {
    return (await DONE[line.command.name](scene, line.argument)) !== false;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    app.fail(error);
    return false;
  }
}

/** Gives `false` where the line stays in the box. */
type Run = (scene: Scene, argument: string) => unknown;

const DONE: Record<Name, Run> = {
  help: ({ desk }) => desk.say(say.list, ...COMMANDS.map((each) => `/${each.name} ${each.hint}`.trim() + `: ${each.help}`), words.composer.keysBusy),
  new: () => router.go(pathOf("chat")),
  sessions: () => document.getElementById("search")?.focus(),
  model: async ({ desk }, argument) => {
    if (!argument) desk.open({ kind: "model" });
    else await acts.change(desk.session, { model: argument });
  },
  role: async ({ desk }, argument) => {
    const [name = "", model = ""] = argument.split(/\s+/, 2);
    if (!name) desk.open({ kind: "roles" });
    else await acts.change(desk.session, { roles: { [name]: model } });
  },
  mode: async ({ desk, session }, argument) => {
    const names = Object.keys(words.mode);
    if (!argument) desk.say(words.header.mode, words.mode[session.mode] ?? session.mode, names.join(", "));
    else if (!names.includes(argument)) return unknown(desk, say.noMode(argument, names.join(", ")));
    else if (argument === "trust" && session.mode !== "trust") desk.open({ kind: "trust" });
    else await acts.change(desk.session, { mode: argument });
    return true;
  },
  sandbox: async ({ desk, session }, argument) => {
    if (argument === "off") desk.open({ kind: "unsafe" });
    else if (argument === "on") await acts.change(desk.session, { sandbox: true });
    else desk.say(session.sandbox ? words.header.sandboxOn : words.header.sandboxOff);
  },
  status: ({ desk, session }) =>
    desk.say(
      titleOf(session.title),
      `${words.header.model}: ${session.model}`,
      `${words.header.mode}: ${words.mode[session.mode] ?? session.mode}`,
      session.sandbox ? words.header.sandboxOn : words.header.sandboxOff,
      words.state[session.state] ?? session.state,
      `${words.header.workspace}: ${session.workspace}`,
      context(session),
      spent(session),
    ),
  plan: ({ desk, session }) =>
    session.plan.length
      ? desk.say(words.plan.title, ...session.plan.map((step) => `${words.plan[step.status ?? "pending"]}: ${step.text}`))
      : desk.say(say.noPlan),
  cost: ({ desk, session }) => desk.say(words.header.cost, spent(session)),
  budget: async ({ desk }, argument) => {
    if (!argument) return desk.open({ kind: "budget" });
    const money = dollars(argument);
    if (money === undefined) return unknown(desk, say.noSum);
    await acts.change(desk.session, { budget: money });
    return true;
  },
  compact: async ({ desk }) => void (await acts.act(desk.session, "compact")),
  retry: async ({ desk }, argument) => void (await acts.retry(desk.session, "", argument)),
  undo: ({ desk, busy }, argument) => {
    if (busy) return unknown(desk, say.running, say.stopFirst);
    desk.open({ kind: "undo", turn: argument === "redo" ? "" : argument, redo: argument === "redo" });
    return true;
  },
  fork: async ({ desk }, argument) => {
    if (argument && !/^\d+$/.test(argument)) return missing(desk, "fork");
    const made = await acts.fork(desk.session, argument ? Number(argument) : null);
    router.go(pathOf("chat", made.id));
    return true;
  },
  rename: async ({ desk }, argument) => {
    if (!argument) return missing(desk, "rename");
    await acts.change(desk.session, { title: argument });
    return true;
  },
  attach: ({ pick }) => pick(),
  queue: async ({ desk, session }, argument) => {
    const id = argument.replace(/^drop\s*/, "");
    if (id) await acts.withdraw(desk.session, id);
    else desk.say(words.queue.title, ...(session.queue.length ? session.queue.map((one) => `${one.id}: ${one.text}`) : [say.nothingWaits]));
  },
  follow: async ({ desk }, argument) => {
    if (!argument) return missing(desk, "follow");
    await acts.send(desk.session, { text: argument, delivery: "follow" });
    return true;
  },
  stop: async ({ desk, session, busy }) => {
    if (busy || session.state === "paused") await acts.act(desk.session, "cancel");
    else desk.say(say.nothingRuns);
  },
  pause: async ({ desk }) => void (await acts.act(desk.session, "pause")),
  continue: async ({ desk }) => {
    try {
      await acts.act(desk.session, "resume");
    } catch (error) {
      if (!(error instanceof Problem) || error.kind !== "nothing_open") throw error;
      desk.say(say.nothingHeld);
    }
  },
  drop: async ({ desk }) => void (await acts.act(desk.session, "drop")),
  dry: async ({ desk }, argument) => {
    if (!argument) return missing(desk, "dry");
    await acts.send(desk.session, { text: argument, dry_run: true });
    return true;
  },
  timeline: ({ desk }) => router.go(pathOf("timeline", desk.session)),
  export: ({ desk }) => {
    const link = document.createElement("a");
    link.href = `/api/v1/sessions/${encodeURIComponent(desk.session)}/export`;
    link.download = `${desk.session}.ndjson`;
    link.click();
  },
};

function unknown(desk: Desk, title: string, ...lines: string[]): false {
  desk.say(title, ...lines);
  return false;
}

function missing(desk: Desk, name: Name): false {
  return unknown(desk, say.missing(`/${name} ${say.commands[name].hint}`));
}

export function context(session: Session): string {
  const { context: used, window } = session;
  return window ? words.header.context(tokens(used), tokens(window), Math.round((used / window) * 100)) : words.header.contextUnknown(tokens(used));
}

export function spent(session: Session): string {
  const { input, output, cached } = session.usage;
  const unknown = session.unpriced ? ` (${words.header.unpriced})` : "";
  return `${money(session.cost)}${unknown}, ${words.header.used(tokens(input), tokens(output), tokens(cached))}`;
}
