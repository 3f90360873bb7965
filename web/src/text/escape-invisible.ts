/** Text in which nothing hides: what a browser would obey or not show is written as an escape, as on a terminal. */

// Controls, what turns the direction of writing, what has no width. A joiner between two characters that are not ASCII
// belongs to them: emoji are made so.
const HIDDEN =
  // eslint-disable-next-line no-control-regex -- these characters are what it is about
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|(?<![^\x00-\x7f])\u200d/gu;
const SHORT: Record<string, string> = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };

export function escapeInvisible(text: string): string {
  return text.replace(HIDDEN, escapeChar);
}

/** The same for a name or a title, which is one line whatever is in it. */
export function escapeToLine(text: string): string {
  return escapeInvisible(text).replace(/[\n\t]/g, escapeChar);
}

/** The same in JSON, which says it in a way of its own and stays what it is. */
export function escapeInJson(text: string): string {
  return text.replace(HIDDEN, (char) => char.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

function escapeChar(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return SHORT[char] ?? (code < 0x100 ? `\\x${digits.padStart(2, "0")}` : code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`);
}
