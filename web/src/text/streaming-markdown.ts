/** Text that grows at its end, rendered block by block: what is whole is not rendered again with every token. */

import { renderMarkdown } from "./markdown";

export interface MarkdownBlock {
  key: number;
  html: string;
}

export class StreamingMarkdown {
  #text = "";
  #whole: MarkdownBlock[] = [];
  /** Where the block begins that is still being written. */
  #from = 0;

  /** The blocks of `text`, which usually is the one before and a little more. */
  render(text: string): MarkdownBlock[] {
    if (!text.startsWith(this.#text)) {
      this.#whole = [];
      this.#from = 0;
    }
    this.#text = text;
    const end = findStableEnd(text, this.#from);
    if (end > this.#from) {
      this.#whole = [...this.#whole, { key: this.#from, html: renderMarkdown(text.slice(this.#from, end)) }];
      this.#from = end;
    }
    const rest = text.slice(this.#from);
    return rest.trim() ? [...this.#whole, { key: this.#from, html: renderMarkdown(rest) }] : this.#whole;
  }
}

/** The end of the last block that nothing which follows can change: a blank line outside of code, lists and quotes. */
function findStableEnd(text: string, from: number): number {
  let end = from;
  let fence = "";
  let at = from;
  let loose = false;
  for (const line of text.slice(from).split("\n")) {
    const next = at + line.length + 1;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (fence) {
      if (mark.startsWith(fence) && line.trim() === mark) fence = "";
    } else if (mark) {
      fence = mark;
      loose = false;
    } else if (/^\s*([-*+>|]|\d+[.)])/.test(line) || /^\s{2,}\S/.test(line)) {
      loose = true;
    } else if (line.trim() === "") {
      // A list may go on behind a blank line: it ends with the next plain paragraph.
      if (!loose && next <= text.length) end = next;
    } else {
      loose = false;
    }
    at = next;
  }
  return end;
}
