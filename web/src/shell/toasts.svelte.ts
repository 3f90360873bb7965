/** Short notices: what was done, with a way back; what went wrong, with what to do next. */

export interface Toast {
  id: number;
  text: string;
  lines: string[];
  bad: boolean;
  act?: { name: string; run: () => void };
}

class Toasts {
  list = $state.raw<Toast[]>([]);
  #last = 0;

  /** Shows it for a while; what is wrong stays until somebody has read it. */
  say(text: string, more: Partial<Omit<Toast, "id" | "text">> & { ms?: number } = {}): number {
    const { ms = more.bad ? 0 : 8000, ...rest } = more;
    const id = ++this.#last;
    const same = this.list.filter((one) => one.text !== text);
    this.list = [...same, { id, text, lines: [], bad: false, ...rest }].slice(-4);
    if (ms) setTimeout(() => this.drop(id), ms);
    return id;
  }

  drop(id: number): void {
    this.list = this.list.filter((one) => one.id !== id);
  }
}

export const toasts = new Toasts();
