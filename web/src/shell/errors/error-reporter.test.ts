import { expect, it } from "vitest";

import { describeError, type ErrorReport, ErrorReporter, isHarmless } from "./error-reporter";

function reports(): { box: ErrorReporter; sent: ErrorReport[]; clock: { now: number } } {
  const sent: ErrorReport[] = [];
  const clock = { now: 0 };
  const box = new ErrorReporter(
    (report) => {
      sent.push(report);
      return Promise.reject(new Error("offline"));
    },
    () => clock.now,
  );
  return { box, sent, clock };
}

it("tells each thing once", () => {
  const { box, sent } = reports();
  const error = new TypeError("x is undefined");
  expect([box.report(error, "chat"), box.report(error, "chat")]).toEqual([true, false]);
  expect(sent).toHaveLength(1);
  expect(sent[0]).toMatchObject({ message: "TypeError: x is undefined", where: "chat" });
});

it("is bounded by the minute and in all", () => {
  const { box, sent, clock } = reports();
  for (let at = 0; at < 100; at++) box.report(new Error(`no ${at}`), "chat");
  expect(sent).toHaveLength(5);
  for (let minute = 1; minute < 100; minute++) {
    clock.now = minute * 61_000;
    for (let at = 0; at < 10; at++) box.report(new Error(`minute ${minute} no ${at}`), "chat");
  }
  expect(sent).toHaveLength(40);
});

it("sends no more than the server takes, whatever was thrown", () => {
  const long = describeError(new Error("x".repeat(9000)), "y".repeat(900), "z".repeat(900));
  expect([long.message.length, long.where.length, long.version.length]).toEqual([2000, 200, 100]);
  expect(long.stack.length).toBeLessThanOrEqual(8000);
  expect(describeError("", "").message).toBe("unknown");
  expect(describeError(undefined, "").message).toBe("undefined");
});

it("knows what is no error", () => {
  expect(isHarmless(new DOMException("", "AbortError"))).toBe(true);
  expect(isHarmless("ResizeObserver loop completed with undelivered notifications.")).toBe(true);
  expect(isHarmless(new Error("real"))).toBe(false);
});
