/** What the page about this installation says. */

export const aboutWords = {
  version: "Version",
  look: "Look again",
  up: "Up for",
  store: "Store",
  writable: "writable",
  readOnly: "read only",
  disk: "Free on disk",
  memory: "Memory",
  turns: "Turns at work",
  sandbox: "Sandbox",
  states: { ok: "All is well.", degraded: "Something is wrong, and yet work can be done.", failing: "The store does not answer.", ending: "The server is about to end." } as Record<
    string,
    string
  >,
  doctor: "Doctor",
  examine: "Examine everything",
  examining: "Looking at everything; this takes a while …",
  healthy: "Nothing is broken.",
  broken: "Something is broken.",
  grade: { ok: "good", warn: "to know", fail: "broken" } as Record<string, string>,
  docs: "Documentation",
  api: "The API, to read and try",
  redoc: "The API as one document",
  openapi: "OpenAPI description",
  licences: "Packages in this page",
  licencesHelp: "The browser app contains these packages, under their licences.",
  reachable: "answers",
  unreachable: "does not answer",
  models: (count: number) => (count === 1 ? "1 model" : `${count} models`),
} as const;
