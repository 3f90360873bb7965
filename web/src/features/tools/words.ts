/** What the list of tools says. */

export const toolsWords = {
  mode: "In the mode",
  configured: "as configured",
  workspace: "With the rules of",
  search: "Search tools",
  none: "No tool has these words.",
  decision: { allow: "allowed", ask: "asks", deny: "denied" } as Record<string, string>,
  details: "Details",
  arguments: "Arguments",
  from: "from",
  recourse: "If it is cut off",
  recourses: {
    pure: "it is simply done again",
    by_content: "the files tell whether it was done",
    by_key: "doing it again does nothing twice",
    by_probe: "it is looked whether it was done",
    unknowable: "nobody can tell whether it was done",
  } as Record<string, string>,
  byArguments: "Effect and risk depend on the arguments; this is a usual call.",
  explain: "Explain a call",
} as const;
