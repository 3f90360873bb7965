/** Signals: what is being said and printed just now, and is not kept. */

import type { SylphEvent } from "../events";
import type { SessionBuilder } from "../session-builder";

const MAX_LIVE_OUTPUT = 200_000;

export function applySignal(builder: SessionBuilder, event: SylphEvent): void {
  const live = builder.session.live;
  switch (event.type) {
    case "delta.text":
      live.text += event.data.text;
      break;
    case "delta.reasoning":
      live.reasoning += event.data.text;
      break;
    case "delta.args": {
      const { index, name, text } = event.data;
      const known = (live.args[index] ??= { name: "", text: "" });
      known.name = name || known.name;
      known.text += text;
      break;
    }
    case "tool.output":
      builder.changeCall(event.data.call, (call) => (call.live = keepTail(call.live + event.data.text)));
      break;
    case "progress":
      live.progress = event.data.text;
      break;
    case "live": {
      // All at once, for who came late or missed some.
      const { text = "", reasoning = "", calls = [], outputs = {}, progress = "" } = event.data;
      builder.session.live = { text, reasoning, args: calls.map((call) => ({ ...call })), progress };
      for (const [id, printed] of Object.entries(outputs)) builder.changeCall(id, (call) => (call.live = call.output ? "" : printed));
      break;
    }
    case "session.failed":
      builder.addNote(event, "bad", event.data.trouble.message);
      break;
  }
}

/** The end of what a call prints: a page is no place for gigabytes. */
function keepTail(text: string): string {
  return text.length > MAX_LIVE_OUTPUT ? text.slice(-MAX_LIVE_OUTPUT / 2) : text;
}
