/** Everything the app says, in one place: `words/` has it page by page. */

import { asking } from "./words/asking";
import { chat } from "./words/chat";
import { dashboard } from "./words/dashboard";
import { files } from "./words/files";
import { shell } from "./words/shell";
import { slash } from "./words/slash";
import { timeline } from "./words/timeline";

export { ago, lasting, money, tokens } from "./words/amounts";

export const words = {
  name: "Sylph",
  nav: { chat: "Chat", timeline: "Timeline", dashboard: "Dashboard", files: "Files", settings: "Settings", docs: "API" },
  again: {
    title: "Run this again?",
    later: (count: number) =>
      `${count === 1 ? "The turn after it is" : `The ${count} turns after it are`} set aside: the model no longer sees ${count === 1 ? "it" : "them"}. The log keeps ${count === 1 ? "it" : "them"}, and files stay as they are.`,
    instead: "To keep both, use “Fork from here” at the message.",
    go: "Run it again",
    cancel: "Cancel",
  },
  missing: "There is no such session.",
  ...asking,
  ...chat,
  ...dashboard,
  ...files,
  ...shell,
  ...slash,
  ...timeline,
} as const;
