/** Whether the server has another app than the one that runs here; it is taken up when nothing is lost by it. */

import { Problem, sendRequest } from "../net/api";

/** So long nothing was typed or clicked before the page is loaded anew by itself. */
const CALM_MS = 20_000;

class AppUpdate {
  /** Whether there is another. */
  available = $state(false);
  #last = Date.now();

  /** Looks what the server would send now. */
  async checkServer(): Promise<void> {
    const mine = listAssets(document.documentElement.outerHTML);
    if (!mine) return;
    try {
      const theirs = listAssets(await (await sendRequest("/")).text());
      if (!theirs || theirs === mine) return;
      this.available = true;
      await navigator.serviceWorker?.getRegistration().then((known) => known?.update());
    } catch (error) {
      // The next time the stream is opened it looks again.
      if (!(error instanceof Problem) && !(error instanceof TypeError)) throw error;
    }
  }

  /** Watches for a moment in which loading anew takes nothing from anybody. */
  watchForCalm(): () => void {
    const noteActivity = (): void => void (this.#last = Date.now());
    const timer = setInterval(() => this.available && this.canReload() && this.reload(), 2000);
    const kinds = ["keydown", "pointerdown", "input"] as const;
    for (const kind of kinds) addEventListener(kind, noteActivity, { capture: true, passive: true });
    return () => {
      clearInterval(timer);
      for (const kind of kinds) removeEventListener(kind, noteActivity, { capture: true });
    };
  }

  canReload(): boolean {
    const calm = document.hidden || Date.now() - this.#last > CALM_MS;
    // Pages that hold something unsaved say so when they are about to be left.
    const free = dispatchEvent(new Event("beforeunload", { cancelable: true }));
    return calm && free && !document.querySelector("dialog[open]") && !isTyping();
  }

  reload(): void {
    location.reload();
  }
}

/** Whether something stands in a box that has the focus. */
function isTyping(): boolean {
  const box = document.activeElement;
  return (box instanceof HTMLTextAreaElement || box instanceof HTMLInputElement) && box.value !== "";
}

/** The parts that a page is made of. Their names tell their contents. */
export function listAssets(html: string): string {
  return [...html.matchAll(/(?:src|href)="(\/assets\/index-[^"]+)"/g)].map((found) => found[1]).toSorted().join(" ");
}

export const appUpdate = new AppUpdate();
