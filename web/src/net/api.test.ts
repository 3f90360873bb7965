// @vitest-environment node
import { afterEach, expect, it, vi } from "vitest";

import { loginLost, Problem, requestJson, sendRequest } from "./api";

afterEach(() => vi.unstubAllGlobals());

const answering = (answer: () => Promise<Response>): void => void vi.stubGlobal("fetch", answer);
const cut = (): Response =>
  new Response(
    new ReadableStream({
      start: (pipe) => {
        pipe.enqueue(new TextEncoder().encode('{"a":'));
        pipe.error(new TypeError("Failed to fetch"));
      },
    }),
  );

it.each([
  ["does not come", () => Promise.reject(new TypeError("Failed to fetch"))],
  ["is cut off", () => Promise.resolve(cut())],
])("tells that the server does not answer where the answer %s", async (_, answer) => {
  answering(answer);
  await expect(requestJson("x")).rejects.toMatchObject({ kind: "offline", status: 0 });
});

it("lets a request be given up", async () => {
  answering(() => Promise.reject(new DOMException("given up", "AbortError")));
  await expect(requestJson("x")).rejects.toMatchObject({ name: "AbortError" });
});

it("tells what the server refuses, and why, whatever it is refused with", async () => {
  answering(async () => Response.json({ title: "No", status: 409, detail: "It runs.", kind: "busy", next: ["wait"] }, { status: 409 }));
  await expect(sendRequest("x")).rejects.toMatchObject({ message: "It runs.", kind: "busy", next: ["wait"] });
  answering(async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
  await expect(sendRequest("x")).rejects.toMatchObject({ message: "Bad Gateway", status: 502 });
});

it("says so once nobody is known any more", async () => {
  let told = 0;
  loginLost.addEventListener("lost", () => told++);
  answering(async () => Response.json({ title: "Who?", status: 401, detail: "", kind: "unauthorized" }, { status: 401 }));
  await expect(sendRequest("x")).rejects.toBeInstanceOf(Problem);
  expect(told).toBe(1);
});
