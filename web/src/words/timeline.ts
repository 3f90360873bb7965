/** What the picture of a session says. */

export const timeline = {
  timeline: {
    zoom: "Zoom",
    zoomIn: "Zoom in",
    zoomOut: "Zoom out",
    fit: "Show all",
    older: "Load what came before",
    moment: "Moment",
    facts: "Facts",
    picture: "What happened, on a time axis. Arrow keys go from part to part, Enter shows its facts, plus and minus zoom.",
    lanes: { turn: "Turns", phase: "Phases", model: "Model", tool: "Tools", ask: "Questions" },
    tones: { plain: "", good: "went well", warn: "was stopped", bad: "went wrong" },
    phases: { processing: "at work", scouting: "looking around", compacting: "summarising", finalizing: "finishing", awaiting_user: "needs you", paused: "paused", cancelling: "stopping" } as Record<string, string>,
    span: (lane: string, label: string, lasted: string, tone: string) => `${lane}: ${label}, ${lasted}${tone ? `, ${tone}` : ""}`,
    pause: (lasted: string) => `Nothing happened for ${lasted}`,
    fact: (seq: number, type: string) => `#${seq} ${type}`,
    fork: "Fork here",
    goThere: "Show the conversation here",
    then: "The conversation as it was",
    atEnd: "The conversation now",
    toEnd: "Back to now",
    state: "State",
    before: (count: number) => `${count} earlier entries are not shown.`,
  },
} as const;
