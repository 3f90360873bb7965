/** What went wrong in the page, told to the server: each thing once, a few in a minute, and not more than is taken there. */

export interface ErrorReport {
  message: string;
  where: string;
  stack: string;
  version: string;
}

const MAX_PER_MINUTE = 5;
const MAX_REPORTS = 40;

export class ErrorReporter {
  #known = new Set<string>();
  #times: number[] = [];

  constructor(
    private readonly send: (report: ErrorReport) => Promise<unknown>,
    private readonly now: () => number = Date.now,
  ) {}

  /** Whether it was told. That telling it fails is no further error. */
  report(error: unknown, where: string, version = ""): boolean {
    const report = describeError(error, where, version);
    const key = `${report.message}\n${report.stack.split("\n")[1] ?? ""}`;
    const now = this.now();
    this.#times = this.#times.filter((time) => now - time < 60_000);
    if (this.#known.has(key) || this.#times.length >= MAX_PER_MINUTE || this.#known.size >= MAX_REPORTS) return false;
    this.#known.add(key);
    this.#times.push(now);
    this.send(report).catch(() => undefined);
    return true;
  }
}

export function describeError(error: unknown, where: string, version = ""): ErrorReport {
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
export function isHarmless(error: unknown): boolean {
  if (error instanceof DOMException && error.name === "AbortError") return true;
  return /^(Error: )?ResizeObserver loop/.test(String(error));
}
