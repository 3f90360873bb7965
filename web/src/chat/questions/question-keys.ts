/** The keys for questions: they press the buttons that are seen, and nothing that is not. */

import { typed } from "../composer/message-box-focus";

export type Keyed = "yes" | "no" | "question";

const CARD = ".ask";
const FIRST = "[data-answer=yes], button:enabled, input, textarea";

/** Does in `region`, the list of open questions, what a key says; tells whether it did. */
export function keyed(what: Keyed, region: HTMLElement, home: () => void): boolean {
  const at = document.activeElement;
  const mine = at?.closest<HTMLElement>(CARD);
  const card = mine && region.contains(mine) ? mine : region.querySelector<HTMLElement>(CARD);
  if (what === "question") {
    if (card === mine) home();
    else card?.querySelector<HTMLElement>(FIRST)?.focus();
    return card !== null;
  }
  // Whoever is writing is not answering.
  if (card !== mine && typed(at)) return false;
  const button = card?.querySelector<HTMLButtonElement>(`[data-answer=${what}]:enabled`);
  button?.click();
  return Boolean(button);
}
