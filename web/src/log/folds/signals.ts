/** Signals: what is being said and printed just now, and is not kept. */

import type { SylphEvent } from "../events";
import type { Sheet } from "../session-builder";

const SHOWN = 200_000;

export function signal(sheet: Sheet, event: SylphEvent): void {
  const live = sheet.session.live;
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
      sheet.call(event.data.call, (call) => (call.live = tail(call.live + event.data.text)));
      break;
    case "progress":
      live.progress = event.data.text;
      break;
    case "live": {
      // All at once, for who came late or missed some.
      const { text = "", reasoning = "", calls = [], outputs = {}, progress = "" } = event.data;
      sheet.session.live = { text, reasoning, args: calls.map((call) => ({ ...call })), progress };
      for (const [id, printed] of Object.entries(outputs)) sheet.call(id, (call) => (call.live = call.output ? "" : printed));
      break;
    }
    case "session.failed":
      sheet.note(event, "bad", event.data.trouble.message);
      break;
  }
}

/** The end of what a call prints: a page is no place for gigabytes. */
function tail(text: string): string {
  return text.length > SHOWN ? text.slice(-SHOWN / 2) : text;
}
