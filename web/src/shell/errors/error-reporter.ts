/** What went wrong in the page, told to the server: each thing once, a few in a minute, and not more than is taken there. */

export interface Report {
  message: string;
  where: string;
  stack: string;
  version: string;
}

const A_MINUTE = 5;
const IN_ALL = 40;

export class Reports {
  #known = new Set<string>();
  #times: number[] = [];

  constructor(
    private readonly send: (report: Report) => Promise<unknown>,
    private readonly now: () => number = Date.now,
  ) {}

  /** Whether it was told. That telling it fails is no further error. */
  take(error: unknown, where: string, version = ""): boolean {
    const report = describe(error, where, version);
    const key = `${report.message}\n${report.stack.split("\n")[1] ?? ""}`;
    const now = this.now();
    this.#times = this.#times.filter((time) => now - time < 60_000);
    if (this.#known.has(key) || this.#times.length >= A_MINUTE || this.#known.size >= IN_ALL) return false;
    this.#known.add(key);
    this.#times.push(now);
    this.send(report).catch(() => undefined);
    return true;
  }
}

export function describe(error: unknown, where: string, version = ""): Report {
  const thrown = error instanceof Error;
  const message = thrown ? `${error.name}: ${error.message}` : String(error);
  const stack = thrown ? (error.stack ?? "") : "";
  return {
    message: message.slice(0, 2000) || "unknown",
    where: where.slice(0, 200),
    stack: stack.slice(0, 8000),
    version: version.slice(0, 100),
  };
}

/** Told by browsers where nothing is wrong, or where the page is only being left. */
export function harmless(error: unknown): boolean {
  if (error instanceof DOMException && error.name === "AbortError") return true;
  return /^(Error: )?ResizeObserver loop/.test(String(error));
}
