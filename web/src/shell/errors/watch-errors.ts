/** Errors of the page: caught wherever they come from, shown plainly, told to the server. */

import { postJson, Problem } from "../../net/api";
import { app } from "../../state/app-state.svelte";
import { router } from "../../state/router.svelte";
import { toasts } from "../../state/toasts.svelte";
import { words } from "../../words";
import { appUpdate } from "../app-update.svelte";
import { ErrorReporter, isHarmless } from "./error-reporter";

const reporter = new ErrorReporter((report) => (app.principal && !app.loggedOut ? postJson("logs/client", report) : Promise.resolve()));

export function handleError(error: unknown): void {
  if (isHarmless(error)) return;
  if (error instanceof Problem) {
    // Somebody forgot to say what happens then: it is told like any other refusal.
    app.showProblem(error);
    return;
  }
  const told = reporter.report(error, router.route.page);
  const text = error instanceof Error ? error.message : String(error);
  toasts.show(words.failed.page, {
    bad: true,
    lines: [text.slice(0, 300), ...(told ? [words.failed.told] : [])],
    act: { name: words.failed.again, run: () => location.reload() },
  });
}

export function watchErrors(): void {
  addEventListener("error", (event) => event.error && handleError(event.error));
  addEventListener("unhandledrejection", (event) => handleError(event.reason));
  // A part of the app that is not there any more: the server has another version.
  addEventListener("vite:preloadError", () => {
    toasts.show(words.failed.part, { bad: true, act: { name: words.failed.again, run: () => appUpdate.reload() } });
  });
}
