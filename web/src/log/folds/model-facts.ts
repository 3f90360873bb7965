/** Facts of what models did. */

import type { SylphEvent } from "../events";
import type { Sheet } from "../session-builder";

export function thought(sheet: Sheet, event: SylphEvent): boolean {
  const session = sheet.session;
  switch (event.type) {
    case "model.requested":
      sheet.dropped = [];
      sheet.asked = event.ts;
      if (event.data.role === undefined || event.data.role === "main") {
        sheet.hush();
        session.window = event.data.window ?? session.window;
      }
      return true;
    case "model.responded": {
      const data = event.data;
      const usage = data.usage ?? {};
      for (const key of Object.keys(session.usage) as (keyof typeof session.usage)[]) {
        session.usage[key] += usage[key] ?? 0;
      }
      const turn = sheet.turn(event);
      turn.cost += data.cost ?? 0;
      session.cost += data.cost ?? 0;
      session.unpriced ||= data.cost === undefined || data.cost === null;
      if (data.role !== undefined && data.role !== "main") return true;
      session.context = (usage.input ?? 0) + (usage.output ?? 0) || session.context;
      sheet.hush();
      if (data.text || data.reasoning) {
        turn.items.push({
          kind: "told",
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
      failed(sheet, event);
      return true;
    case "model.fell_back":
      sheet.note(event, event.data.to ? "warn" : "bad", event.data.to || event.data.trouble.message);
      return true;
    case "compaction.made":
      session.context = event.data.tokens_after;
      sheet.note(event, "plain", event.data.summary);
      return true;
    case "compaction.failed":
      sheet.note(event, "warn", event.data.trouble.message);
      return true;
    case "budget.warned":
    case "budget.stopped":
    case "budget.exceeded":
      sheet.note(event, event.type === "budget.warned" ? "warn" : "bad", "");
      return true;
  }
  return false;
}

function failed(sheet: Sheet, event: SylphEvent & { type: "model.failed" }): void {
  const { role, cost, partial, trouble, model, retry_ms: again } = event.data;
  const over = again === undefined || again === null;
  sheet.session.cost += cost ?? 0;
  if (role === undefined || role === "main") sheet.hush();
  // Where there is another try, it says all of it anew.
  if (over && partial?.trim() && (role === undefined || role === "main")) {
    sheet.turn(event).items.push({
      kind: "told", seq: event.seq, ts: event.ts, model, text: partial, reasoning: "", usage: {}, cost: null, ms: 0, firstMs: 0, cut: true,
    });
  }
  // That somebody stopped it is no failure; the end of the turn tells it.
  if (trouble.kind !== "cancelled") sheet.note(event, over ? "bad" : "warn", trouble.message);
}
