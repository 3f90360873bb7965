import { expect, it, vi } from "vitest";

import { type ProblemHints, translateHints } from "./problem-hints";
import { explainRequestError } from "./request-errors";

// Whichever pages this app has.
vi.mock("../features/registry", async (original) => ({ ...(await original<object>()), isPagePath: () => true }));

const shown = (told: ProblemHints): string[] => translateHints(told).map((hint) => (hint.to ? `${hint.text} [${hint.to}]` : hint.text));

it("leads to the services where there is no model", () => {
  const next = ["sylph connect PROVIDER  saves a key, or logs in", "or set OPENAI_API_KEY …", "GET /api/v1/providers", "PATCH /api/v1/config"];
  expect(shown({ kind: "no_model", next })).toEqual([
    "Connect a model service: Settings → Services. [/settings/services]",
    "Or start a model server on the server's machine: Ollama, llama.cpp, vLLM and LM Studio are found by themselves.",
  ]);
});

it("tells of a model that is not there where to look", () => {
  const next = ["give it as provider/model", "sylph models", "GET /api/v1/models"];
  expect(shown({ kind: "no_model", next, details: { model: "x" } })).toEqual([
    "give it as provider/model",
    "See which models there are: Settings → Models and roles. [/settings/models]",
  ]);
});

it("raises a budget where that is done", () => {
  const session = ['sylph -s 8x9k977g29kj --budget 0.31 "go on"', "or for all sessions: sylph config set budget.session.money 0.31", "sylph cost"];
  expect(shown({ kind: "budget_spent", next: session, details: { scope: "session" } })).toEqual([
    "Raise the budget of the session in its header, to $0.31 or more; then press Retry.",
  ]);
  const day = ["sylph config set budget.day.tokens 1000000", 'sylph -s 8x9k977g29kj "go on"', "or wait for the next day", "sylph cost"];
  expect(shown({ kind: "budget_spent", next: day, details: { scope: "day" } })).toEqual([
    "Set budget.day.tokens to 1000000: Settings → Configuration. [/settings/config/budget]",
    "Or wait for the next day.",
  ]);
});

it.each([
  ["--no-check keeps it without asking the service", "To keep it unchecked, untick “Ask the service first whether it is good”."],
  ["or name another model with -m", "Or choose another model in the header of the session."],
  ["sylph config edit", "Settings → Configuration. [/settings/config]"],
  ["sylph config set undo.enabled true", "Set undo.enabled to true: Settings → Configuration. [/settings/config/undo]"],
  ["sylph config unset credentials.keep", "Clear credentials.keep: Settings → Configuration. [/settings/config/credentials]"],
  ["or limit tokens instead: sylph config set budget.day.tokens 1000000", "Or limit tokens instead: Set budget.day.tokens to 1000000: Settings → Configuration. [/settings/config/budget]"],
  ["sylph resume 8x9k977g29kj", "Go on: open the session and press Retry, or say “go on”. [/chat/8x9k977g29kj]"],
  ["Run `sylph doctor`.", "Have everything examined: Settings → About. [/settings/about]"],
  ["POST /api/v1/sessions/8x9k977g29kj/restore", "Bring it back: open the session. [/chat/8x9k977g29kj]"],
  ["Look whether the folder is there.", "Look whether the folder is there."],
  // There is no such way in the app.
  ["`sylph verify` proves that nothing else was changed.", "`sylph verify` proves that nothing else was changed."],
])("says %j for the app", (next, wanted) => {
  expect(shown({ kind: "other", next: [next] })).toEqual([wanted]);
});

it("leaves out what is seen anyway, and says nothing twice", () => {
  const next = ["`sylph session list` shows all of them.", "sylph connect openai", "sylph connect status", "GET /api/v1/sessions"];
  expect(shown({ kind: "not_found", next })).toEqual(["Connect a model service: Settings → Services. [/settings/services]"]);
});

it("speaks of no body of a request", () => {
  expect(explainRequestError("The body cannot be read: Expected `str` of length <= 1000000 - at `$.text`")).toMatch(/^That is too long: 1,000,000 characters/);
  expect(explainRequestError("The body cannot be read: Expected `int`, got `str` - at `$.budget`")).toBe("The server did not understand this: Expected `int`, got `str` (budget)");
  expect(explainRequestError("There is no such file.")).toBe("There is no such file.");
});
