/** Work that is asked of the server: whether it goes on, and what went wrong. */

import { Problem } from "../../net/api";

export class ServerTask {
  busy = $state(false);
  problem = $state.raw<Problem | null>(null);
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Does it after what was asked before; undefined where it failed, and `problem` says why. */
  async run<T>(work: () => Promise<T>): Promise<T | undefined> {
    this.#waiting += 1;
    this.busy = true;
    const before = this.#last;
    const mine = before.then(() => this.#attempt(work));
    this.#last = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.#waiting -= 1;
      this.busy = this.#waiting > 0;
    }
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    this.problem = null;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem = error;
      return undefined;
    }
  }
}
