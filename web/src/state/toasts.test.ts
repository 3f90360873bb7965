import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Problem } from "../net/api";
import { ToastQueue } from "./toasts.svelte";

const problem = (kind: string, detail: string): Problem => new Problem({ title: "", status: 0, detail, kind });
const texts = (toasts: ToastQueue): string[] => toasts.list.map((one) => one.text);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("takes everything away by itself, what went wrong later", () => {
  const toasts = new ToastQueue();
  toasts.show("Done.");
  toasts.showProblem(problem("config", "It did not work."));
  vi.advanceTimersByTime(9000);
  expect(texts(toasts)).toEqual(["It did not work."]);
  vi.advanceTimersByTime(9000);
  expect(texts(toasts)).toEqual([]);
});

it("stands still while somebody looks, and leaves time to read the rest", () => {
  const toasts = new ToastQueue();
  toasts.show("Done.");
  vi.advanceTimersByTime(7900);
  toasts.pauseClocks();
  toasts.show("Done, too.");
  vi.advanceTimersByTime(60_000);
  expect(texts(toasts)).toEqual(["Done.", "Done, too."]);
  toasts.resumeClocks();
  vi.advanceTimersByTime(3900);
  expect(texts(toasts)).toEqual(["Done.", "Done, too."]);
  vi.advanceTimersByTime(200);
  expect(texts(toasts)).toEqual(["Done, too."]);
  vi.advanceTimersByTime(5000);
  expect(texts(toasts)).toEqual([]);
});

it("forgets that the server did not answer once it answers", () => {
  const toasts = new ToastQueue();
  toasts.showProblem(problem("offline", "The server does not answer."));
  toasts.showProblem(problem("config", "It did not work."));
  toasts.dropOffline();
  expect(texts(toasts)).toEqual(["It did not work."]);
});

it("forgets what went wrong after a later success, but not before it could be read", () => {
  const toasts = new ToastQueue();
  toasts.showProblem(problem("config", "It did not work."));
  toasts.show("Deleted.", { ms: 15_000 });
  vi.advanceTimersByTime(1000);
  toasts.dropProblemsBefore(Date.now());
  expect(texts(toasts)).toEqual(["It did not work.", "Deleted."]);
  vi.advanceTimersByTime(4000);
  toasts.dropProblemsBefore(Date.now());
  expect(texts(toasts)).toEqual(["Deleted."]);
});

it("does not follow to another page, but for what can be taken back", () => {
  const toasts = new ToastQueue();
  toasts.showProblem(problem("config", "It did not work."));
  toasts.show("Deleted.");
  toasts.dropProblems();
  expect(texts(toasts)).toEqual(["Deleted."]);
});

it("shows four at the most, the same once, and closes the newest first", () => {
  const toasts = new ToastQueue();
  for (const text of ["a", "b", "c", "d", "e", "b"]) toasts.show(text);
  expect(texts(toasts)).toEqual(["c", "d", "e", "b"]);
  expect(toasts.closeNewest()).toBe(true);
  expect(texts(toasts)).toEqual(["c", "d", "e"]);
});
