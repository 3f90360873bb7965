/** Facts of what people said, and of the turns that came of it. */

import type { SylphEvent } from "../events";
import type { ToolCallState, Turn, UserMessage } from "../session";
import type { SessionBuilder } from "../session-builder";

const MAX_TITLE_LENGTH = 60;
const UNDER_WAY: ReadonlySet<string> = new Set<ToolCallState>(["called", "waiting", "asking", "running"]);
/** Exit codes above it are those of commands that a signal has ended. */
const SIGNAL_EXIT_CODE = 128;

export function foldTurnFact(builder: SessionBuilder, event: SylphEvent): boolean {
  const session = builder.session;
  switch (event.type) {
    case "input.received": {
      const { id, text, delivery, images } = event.data;
      const said: UserMessage = {
        kind: "user",
        seq: event.seq,
        ts: event.ts,
        id,
        text,
        images: images ?? [],
        actor: event.actor,
        steered: false,
        lost: false,
      };
      builder.inputs.set(id, said);
      session.title ||= titleFromText(text);
      session.queue = [...session.queue, { id, text, follow: delivery === "follow", images: said.images }];
      return true;
    }
    case "input.delivered":
      builder.deliverInput(event, event.data.id, true);
      return true;
    case "input.cancelled": {
      const input = builder.inputs.get(event.data.id);
      if (input && event.turn) builder.withdrawnInputs.push({ ...input, seq: input.seq || event.seq, ts: input.ts || event.ts, lost: true });
      builder.inputs.delete(event.data.id);
      session.queue = session.queue.filter((one) => one.id !== event.data.id);
      return true;
    }
    case "turn.started": {
      const turn = builder.beginTurn(event.turn, event);
      turn.retryOf = event.data.retry_of ?? "";
      builder.withdrawnInputs = [];
      builder.clearLive();
      builder.deliverInput(event, event.data.input, false);
      return true;
    }
    case "turn.resumed":
      builder.clearLive();
      builder.outputClearedAt = event.seq;
      for (const call of session.calls.values()) if (call.live) builder.changeCall(call.id, (one) => (one.live = ""));
      // Whoever waited for these answers is gone; the turn asks anew.
      builder.closeQuestions();
      builder.addNote(event, "warn", "");
      return true;
    case "turn.ended": {
      const turn = builder.turnOf(event);
      // A copy that was made in the middle of it adds the end later; the work was over before.
      turn.ended = event.data.trouble?.kind === "forked" ? Math.max(turn.began, builder.lastTsBeforeFork) : event.ts;
      turn.last = event.seq;
      turn.outcome = event.data.outcome;
      turn.trouble = event.data.trouble ?? null;
      turn.rounds = event.data.rounds ?? 0;
      if (turn.outcome === "cancelled") turn.items.push(...builder.withdrawnInputs);
      builder.withdrawnInputs = [];
      builder.clearLive();
      builder.closeQuestions();
      stopOpenCalls(builder, turn);
      return true;
    }
    case "history.rewound":
      for (const turn of session.turns) {
        if (turn.id && turn.first >= event.data.to && turn.id !== event.turn && !turn.rewound) {
          builder.copyTurn(turn).rewound = true;
        }
      }
      return true;
  }
  return false;
}

/** Calls that the end of their turn was the end of. */
function stopOpenCalls(builder: SessionBuilder, turn: Turn): void {
  const cancelled = turn.outcome === "cancelled";
  for (const item of turn.items) {
    if (item.kind !== "tool") continue;
    const { id, state, exit, ended } = item.call;
    // A command that was stopped has ended by a signal, in the last round.
    const killed = cancelled && state === "failed" && exit !== null && exit > SIGNAL_EXIT_CODE && ended >= builder.modelAskedAt;
    if (!killed && !UNDER_WAY.has(state)) continue;
    builder.changeCall(id, (call) => {
      call.state = "stopped";
      if (killed) call.ms = Math.max(call.ms, ended - call.began);
    });
  }
}

/** What a session is called until it has a title: its first words. */
export function titleFromText(text: string): string {
  const line = [...text.trim().replace(/\s+/g, " ")];
  return line.length <= MAX_TITLE_LENGTH ? line.join("") : `${line.slice(0, MAX_TITLE_LENGTH - 1).join("").trimEnd()}…`;
}
