/** Server-sent events out of a stream of bytes, however they were cut. */

export interface SseMessage {
  id: string | null;
  event: string;
  data: string;
}

/** Takes pieces of text, gives whole messages. Comments (heartbeats) give nothing, but show that somebody is there. */
export class SseParser {
  #rest = "";
  #id: string | null = null;
  #event = "";
  #data: string[] = [];

  push(piece: string): SseMessage[] {
    const found: SseMessage[] = [];
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#readLine(line, found);
    return found;
  }

  #readLine(line: string, found: SseMessage[]): void {
    if (line === "") {
      if (this.#data.length) found.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
      this.#id = null;
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
}
