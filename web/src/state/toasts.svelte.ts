/** Short notices: what was done, with a way back; what went wrong, with what to do next. Each goes away by itself. */

import type { Problem } from "../net/api";

export interface Toast {
  id: number;
  text: string;
  lines: string[];
  bad: boolean;
  act?: { name: string; run: () => void };
  /** What the server or the way to it said. */
  problem?: Problem;
  /** When it came. */
  since: number;
}

type ToastOptions = Partial<Omit<Toast, "id" | "text" | "since">> & { ms?: number };

const GOOD_MS = 8000;
/** So long at least for what went wrong, and so much more for each letter of it. */
const BAD_MS = 15_000;
const MS_PER_LETTER = 60;
/** Nothing that went wrong is taken away earlier than this, whatever happens. */
const MIN_READ_MS = 4000;
const MAX_TOASTS = 4;

interface ToastClock {
  left: number;
  begun: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export class ToastQueue {
  list = $state.raw<Toast[]>([]);
  #last = 0;
  // eslint-disable-next-line svelte/prefer-svelte-reactivity -- no clock is drawn
  #clocks = new Map<number, ToastClock>();
  #held = false;

  /** Shows it for a while; the same again counts as one. */
  show(text: string, more: ToastOptions = {}): number {
    const { ms = more.bad ? BAD_MS + MS_PER_LETTER * [text, ...(more.lines ?? [])].join().length : GOOD_MS, ...rest } = more;
    const id = ++this.#last;
    for (const one of this.list) if (one.text === text) this.remove(one.id);
    for (const one of this.list.slice(0, Math.max(0, this.list.length - MAX_TOASTS + 1))) this.remove(one.id);
    this.list = [...this.list, { id, text, lines: [], bad: false, since: Date.now(), ...rest }];
    this.#clocks.set(id, { left: ms, begun: 0, timer: undefined });
    if (!this.#held) this.#startClock(id);
    return id;
  }

  showProblem(problem: Problem): void {
    this.show(problem.message, { bad: true, problem, lines: problem.next });
  }

  remove(id: number): void {
    clearTimeout(this.#clocks.get(id)?.timer);
    this.#clocks.delete(id);
    this.list = this.list.filter((one) => one.id !== id);
  }

  /** Takes the newest away; tells whether there was one. */
  closeNewest(): boolean {
    const last = this.list.at(-1);
    if (last) this.remove(last.id);
    return last !== undefined;
  }

  /** Somebody looks at them, or nobody can: time stands still. */
  pauseClocks(): void {
    if (this.#held) return;
    this.#held = true;
    for (const clock of this.#clocks.values()) {
      clearTimeout(clock.timer);
      clock.left = Math.max(MIN_READ_MS, clock.left - (Date.now() - clock.begun));
    }
  }

  resumeClocks(): void {
    if (!this.#held) return;
    this.#held = false;
    for (const id of this.#clocks.keys()) this.#startClock(id);
  }

  /** The server answers again. */
  dropOffline(): void {
    for (const one of this.list) if (one.problem?.kind === "offline") this.remove(one.id);
  }

  /** Something was done that was begun then: what went wrong before is over. */
  dropProblemsBefore(begun: number): void {
    for (const one of this.list) if (one.problem && one.since + MIN_READ_MS <= begun) this.remove(one.id);
  }

  /** Another page is open: what a page before could not do is no more to be seen there. */
  dropProblems(): void {
    for (const one of this.list) if (one.problem) this.remove(one.id);
  }

  #startClock(id: number): void {
    const clock = this.#clocks.get(id);
    if (!clock) return;
    clock.begun = Date.now();
    clock.timer = setTimeout(() => this.remove(id), clock.left);
  }
}

export const toasts = new ToastQueue();
