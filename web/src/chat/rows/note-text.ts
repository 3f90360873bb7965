/** What Sylph has to say between the messages, in plain words. */

import type { ErrorReport } from "../../log/events";
import type { SessionNote } from "../../log/session";
import { formatDuration, formatMoney, formatTokens } from "../../text/format";
import { words } from "../../words";

export interface NoteText {
  text: string;
  /** What to do about it. */
  kind: string;
  next: string[];
  details: Readonly<Record<string, string>>;
  /** More, for whoever opens it: as Markdown. */
  more: string;
  moreLabel: string;
  /** When the next try comes; 0 for none. */
  retryAt: number;
  link: string;
  /** The undo it tells of. */
  undo: string;
}

const say = words.note;

export function describeNote(note: SessionNote): NoteText {
  const made: NoteText = { text: note.text, kind: "", next: [], details: {}, more: "", moreLabel: "", retryAt: 0, link: "", undo: "" };
  const fact = note.fact;
  const describeTrouble = (what: string, of: ErrorReport): void => {
    made.text = `${what} ${of.message}`.trim();
    [made.kind, made.next, made.details] = [of.kind, of.next ?? [], of.details ?? {}];
  };
  switch (fact.type) {
    case "session.forked":
      return { ...made, text: say.forked, link: fact.data.parent };
    case "session.mode":
      return { ...made, text: say.mode(words.mode[fact.data.mode] ?? fact.data.mode) };
    case "session.sandbox":
      return { ...made, text: fact.data.on ? say.sandboxOn : say.sandboxOff };
    case "session.model":
      return { ...made, text: say.model(fact.data.model) };
    case "turn.resumed":
      return { ...made, text: say.resumed };
    case "model.failed": {
      const again = fact.data.retry_ms;
      describeTrouble(say.modelFailed(fact.data.model), fact.data.trouble);
      if (again !== undefined && again !== null) return { ...made, next: [], retryAt: fact.ts + again };
      return made;
    }
    case "model.fell_back":
      describeTrouble(fact.data.to ? say.fellBack(fact.data.model, fact.data.to) : say.noFallback(fact.data.model), fact.data.trouble);
      return made;
    case "compaction.made": {
      const { tokens_before, tokens_after, summary } = fact.data;
      return { ...made, text: say.compacted(formatTokens(tokens_before), formatTokens(tokens_after)), more: summary, moreLabel: say.summary };
    }
    case "compaction.failed":
      describeTrouble(say.notCompacted, fact.data.trouble);
      return made;
    case "budget.warned": {
      const { scope, what, used, cap } = fact.data;
      return { ...made, text: say.budgetWarned(words.scope[scope] ?? scope, formatBudgetAmount(what, used), formatBudgetAmount(what, cap)) };
    }
    case "budget.stopped": {
      const { scope, what, used, cap } = fact.data;
      return { ...made, text: say.budgetStopped(words.scope[scope] ?? scope, formatBudgetAmount(what, used), formatBudgetAmount(what, cap)), next: [say.raise] };
    }
    case "budget.exceeded":
      return { ...made, text: say.budgetExceeded(fact.data.model, formatBudgetAmount(fact.data.what, fact.data.reserved), formatBudgetAmount(fact.data.what, fact.data.used)) };
    case "files.restored": {
      const { restored = [], left = [] } = fact.data;
      const lines = [...restored.map((path) => `- ${formatPath(path)}`), ...left.map((one) => `- ${formatPath(one.path)}: ${say.left} ${one.why}`)];
      return { ...made, text: say.restored(restored.length, left.length), more: lines.join("\n"), moreLabel: say.files, undo: fact.data.undo };
    }
    case "session.failed":
      describeTrouble("", fact.data.trouble);
      return made;
  }
  return made;
}

/** A path as code, whatever is in it. */
function formatPath(path: string): string {
  return `\`\` ${path.replaceAll("`", "'").replaceAll("\n", " ")} \`\``;
}

export function formatBudgetAmount(what: string, count: number): string {
  if (what === "money") return formatMoney(count);
  if (what === "seconds") return formatDuration(count * 1000);
  return what === "tokens" ? `${formatTokens(count)} tokens` : `${count} ${what}`;
}

/** How long until then, in whole seconds; 0 when it is over. */
export function secondsUntil(until: number, now: number): number {
  return Math.max(0, Math.ceil((until - now) / 1000));
}
