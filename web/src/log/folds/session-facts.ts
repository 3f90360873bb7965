/** Facts of what the session itself is. */

import type { SylphEvent } from "../events";
import type { SessionBuilder } from "../session-builder";

export function foldSessionFact(builder: SessionBuilder, event: SylphEvent): boolean {
  const session = builder.session;
  switch (event.type) {
    case "session.created":
      session.workspace = event.data.workspace;
      session.model = event.data.model;
      session.mode = event.data.mode;
      session.title = event.data.title ?? "";
      session.sandbox = event.data.sandbox ?? true;
      session.label = event.data.label ?? "";
      return true;
    case "session.renamed":
      session.title = event.data.title;
      return true;
    case "session.forked":
      session.parent = event.data.parent;
      Object.assign(session, { queue: [], archived: false, pinned: false, deleted: false, cost: 0, unpriced: false });
      session.usage = { input: 0, output: 0, cached: 0, reasoning: 0, written: 0 };
      builder.inputs.clear();
      builder.withdrawnInputs = [];
      builder.lastTsBeforeFork = builder.previousTs;
      builder.closeQuestions();
      builder.addNote(event, "plain", event.data.parent);
      return true;
    case "session.archived":
      session.archived = event.data.archived;
      return true;
    case "session.pinned":
      session.pinned = event.data.pinned;
      return true;
    case "session.seen":
      session.seen = event.data.upto;
      return true;
    case "session.deleted":
    case "session.restored":
      session.deleted = event.type === "session.deleted";
      return true;
    case "session.mode":
      session.mode = event.data.mode;
      builder.addNote(event, "plain", event.data.mode);
      return true;
    case "session.sandbox":
      session.sandbox = event.data.on;
      builder.addNote(event, event.data.on ? "plain" : "warn", event.data.on ? "on" : "off");
      return true;
    case "session.model":
      session.model = event.data.model;
      builder.addNote(event, "plain", event.data.model);
      return true;
    case "session.role":
      session.roles = { ...session.roles, [event.data.role]: event.data.model };
      return true;
    case "session.budget":
      session.budget = event.data.money ?? null;
      return true;
    case "state.changed": {
      session.state = event.data.to;
      const last = session.turns.at(-1);
      if (last?.last && last.id === event.turn) builder.copyTurn(last).last = event.seq;
      return true;
    }
    case "plan.updated":
      session.plan = event.data.steps;
      return true;
  }
  return false;
}
