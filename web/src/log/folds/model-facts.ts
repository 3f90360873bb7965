/** Facts of what models did. */

import type { SylphEvent } from "../events";
import type { SessionBuilder } from "../session-builder";

export function foldModelFact(builder: SessionBuilder, event: SylphEvent): boolean {
  const session = builder.session;
  switch (event.type) {
    case "model.requested":
      builder.withdrawnInputs = [];
      builder.modelAskedAt = event.ts;
      if (event.data.role === undefined || event.data.role === "main") {
        builder.clearLive();
        session.window = event.data.window ?? session.window;
      }
      return true;
    case "model.responded": {
      const data = event.data;
      const usage = data.usage ?? {};
      for (const key of Object.keys(session.usage) as (keyof typeof session.usage)[]) {
        session.usage[key] += usage[key] ?? 0;
      }
      const turn = builder.turnOf(event);
      turn.cost += data.cost ?? 0;
      session.cost += data.cost ?? 0;
      session.unpriced ||= data.cost === undefined || data.cost === null;
      if (data.role !== undefined && data.role !== "main") return true;
      session.context = (usage.input ?? 0) + (usage.output ?? 0) || session.context;
      builder.clearLive();
      if (data.text || data.reasoning) {
        turn.items.push({
          kind: "assistant",
          seq: event.seq,
          ts: event.ts,
          model: data.model,
          text: data.text,
          reasoning: data.reasoning ?? "",
          usage,
          cost: data.cost ?? null,
          ms: data.ms ?? 0,
          firstMs: data.first_ms ?? 0,
          cut: false,
        });
      }
      return true;
    }
    case "model.failed":
      foldModelFailure(builder, event);
      return true;
    case "model.fell_back":
      builder.addNote(event, event.data.to ? "warn" : "bad", event.data.to || event.data.trouble.message);
      return true;
    case "compaction.made":
      session.context = event.data.tokens_after;
      builder.addNote(event, "plain", event.data.summary);
      return true;
    case "compaction.failed":
      builder.addNote(event, "warn", event.data.trouble.message);
      return true;
    case "budget.warned":
    case "budget.stopped":
    case "budget.exceeded":
      builder.addNote(event, event.type === "budget.warned" ? "warn" : "bad", "");
      return true;
  }
  return false;
}

function foldModelFailure(builder: SessionBuilder, event: SylphEvent & { type: "model.failed" }): void {
  const { role, cost, partial, trouble, model, retry_ms: again } = event.data;
  const over = again === undefined || again === null;
  builder.session.cost += cost ?? 0;
  if (role === undefined || role === "main") builder.clearLive();
  // Where there is another try, it says all of it anew.
  if (over && partial?.trim() && (role === undefined || role === "main")) {
    builder.turnOf(event).items.push({
      kind: "assistant", seq: event.seq, ts: event.ts, model, text: partial, reasoning: "", usage: {}, cost: null, ms: 0, firstMs: 0, cut: true,
    });
  }
  // That somebody stopped it is no failure; the end of the turn tells it.
  if (trouble.kind !== "cancelled") builder.addNote(event, over ? "bad" : "warn", trouble.message);
}
