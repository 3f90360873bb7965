/** Errors of the page: caught wherever they come from, shown plainly, told to the server. */

import { Problem, post } from "../../net/api";
import { router } from "../../state/router.svelte";
import { app } from "../../state/app-state.svelte";
import { words } from "../../words";
import { harmless, Reports } from "./error-reporter";
import { toasts } from "../../state/toasts.svelte";
import { updates } from "../app-update.svelte";

const reports = new Reports((report) => (app.me && !app.out ? post("logs/client", report) : Promise.resolve()));

export function caught(error: unknown): void {
  if (harmless(error)) return;
  if (error instanceof Problem) {
    // Somebody forgot to say what happens then: it is told like any other refusal.
    app.fail(error);
    return;
  }
  const told = reports.take(error, router.place.page);
  const text = error instanceof Error ? error.message : String(error);
  toasts.say(words.failed.page, {
    bad: true,
    lines: [text.slice(0, 300), ...(told ? [words.failed.told] : [])],
    act: { name: words.failed.again, run: () => location.reload() },
  });
}

export function watchErrors(): void {
  addEventListener("error", (event) => event.error && caught(event.error));
  addEventListener("unhandledrejection", (event) => caught(event.reason));
  // A part of the app that is not there any more: the server has another version.
  addEventListener("vite:preloadError", () => {
    toasts.say(words.failed.part, { bad: true, act: { name: words.failed.again, run: () => updates.load() } });
  });
}
