/** What the shell and the chat say; each feature has its own words beside it. */

import { chatWords } from "./chat";
import { shellWords } from "./shell";
import { slashCommandWords } from "./slash-commands";
import { toolCallWords } from "./tool-calls";

export const words = {
  name: "Sylph",
  nav: { docs: "API" },
  again: {
    title: "Run this again?",
    later: (count: number) =>
      `${count === 1 ? "The turn after it is" : `The ${count} turns after it are`} set aside: the model no longer sees ${count === 1 ? "it" : "them"}. The log keeps ${count === 1 ? "it" : "them"}, and files stay as they are.`,
    instead: "To keep both, use “Fork from here” at the message.",
    go: "Run it again",
    cancel: "Cancel",
  },
  missing: "There is no such session.",
  ...toolCallWords,
  ...chatWords,
  ...shellWords,
  ...slashCommandWords,
} as const;
