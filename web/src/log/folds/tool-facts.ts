/** Facts of what tools did, and of what people were asked about it. */

import type { Asked, SylphEvent } from "../events";
import type { SessionQuestion, ToolCall } from "../session";
import type { SessionBuilder } from "../session-builder";

const ALLOWING_ANSWERS: ReadonlySet<string> = new Set(["yes", "session", "always", "edit"]);

export function foldToolFact(builder: SessionBuilder, event: SylphEvent): boolean {
  const session = builder.session;
  switch (event.type) {
    case "tool.called": {
      const call = newToolCall(event.data.call, event.data.name, event.data.arguments, event.seq, event.ts);
      session.calls.set(call.id, call);
      session.live.args = [];
      builder.turnOf(event).items.push({ kind: "tool", seq: event.seq, ts: event.ts, call });
      return true;
    }
    case "tool.decided": {
      const { decision, reason, by, effect, risk, reach, arguments: made } = event.data;
      builder.changeCall(event.data.call, (call) => {
        Object.assign(call, { decision, reason, by, effect, risk, reach: reach ?? {} });
        call.arguments = made || call.arguments;
        call.state = decision === "deny" ? "refused" : call.state;
      });
      return true;
    }
    case "tool.started":
      builder.changeCall(event.data.call, (call) => {
        call.state = "running";
        call.began = event.ts;
        call.effect = event.data.effect;
      });
      return true;
    case "tool.finished": {
      const data = event.data;
      builder.changeCall(data.call, (call) => {
        const stopped = data.trouble?.kind === "cancelled";
        call.state = call.state === "refused" ? "refused" : data.ok ? "done" : stopped ? "stopped" : "failed";
        call.output = data.output;
        call.live = "";
        call.exit = data.exit ?? null;
        call.trouble = data.trouble ?? null;
        call.ms = data.ms ?? 0;
        call.ended = event.ts;
        call.whole = !!data.whole;
        call.wholeBytes = data.whole_bytes ?? 0;
        call.dry = data.dry ?? false;
        call.images = data.images ?? [];
      });
      return true;
    }
    case "files.changed":
      builder.changeCall(event.data.call, (call) => {
        call.changes = event.data.changes ?? [];
        call.gaps = event.data.gaps ?? [];
      });
      return true;
    case "undo.started":
      builder.undos.set(event.data.id, { calls: event.data.calls ?? [], redo: event.data.redo ?? "" });
      return true;
    case "files.restored":
      session.redo = builder.markRestored(event.data.undo) ? "" : event.data.undo;
      builder.addNote(event, "plain", "");
      return true;
    case "asked": {
      const question = { seq: event.seq, ts: event.ts, asked: event.data, answer: "", reason: "", by: "", via: "", open: true, turn: event.turn };
      session.questions = new Map(session.questions).set(event.data.id, question);
      for (const id of listCallIds(event.data)) {
        builder.changeCall(id, (call) => (call.state = call.state === "called" ? "waiting" : call.state === "running" ? "asking" : call.state));
      }
      return true;
    }
    case "answered": {
      const known = session.questions.get(event.data.id);
      if (known) {
        const { answer, reason, by, via } = event.data;
        const settled = { ...known, answer, reason: reason ?? "", by: by ?? "", via: via ?? "", open: false };
        session.questions = new Map(session.questions).set(event.data.id, settled);
        settleCalls(builder, settled);
      }
      return true;
    }
  }
  return false;
}

/** The calls of a question wait no longer, although others may still. */
function settleCalls(builder: SessionBuilder, question: SessionQuestion): void {
  const open = [...builder.session.questions.values()].filter((one) => one.open).flatMap((one) => listCallIds(one.asked));
  for (const id of listCallIds(question.asked)) {
    if (open.includes(id)) continue;
    builder.changeCall(id, (call) => {
      if (call.state === "asking") call.state = "running";
      else if (call.state === "waiting") call.state = ALLOWING_ANSWERS.has(question.answer) ? "called" : "refused";
    });
  }
}

/** The calls that a question is about. */
function listCallIds(asked: Asked): string[] {
  return asked.calls?.length ? asked.calls : asked.call ? [asked.call] : [];
}

function newToolCall(id: string, name: string, given: string, seq: number, ts: number): ToolCall {
  return {
    id,
    name,
    arguments: given,
    state: "called",
    seq,
    began: ts,
    ended: 0,
    decision: "",
    reason: "",
    by: "",
    effect: "",
    risk: "",
    reach: {},
    output: "",
    live: "",
    exit: null,
    trouble: null,
    ms: 0,
    whole: false,
    wholeBytes: 0,
    dry: false,
    images: [],
    changes: [],
    gaps: [],
    undone: false,
  };
}
