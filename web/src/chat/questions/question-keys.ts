/** The keys for questions: they press the buttons that are seen, and nothing that is not. */

import { hasTypedText } from "../composer/message-box-focus";

export type QuestionKey = "yes" | "no" | "question";

const CARD_SELECTOR = ".ask";
const FIRST_CONTROL_SELECTOR = "[data-answer=yes], button:enabled, input, textarea";

/** Does in `region`, the list of open questions, what a key says; tells whether it did. */
export function pressQuestionKey(what: QuestionKey, region: HTMLElement, home: () => void): boolean {
  const at = document.activeElement;
  const mine = at?.closest<HTMLElement>(CARD_SELECTOR);
  const card = mine && region.contains(mine) ? mine : region.querySelector<HTMLElement>(CARD_SELECTOR);
  if (what === "question") {
    if (card === mine) home();
    else card?.querySelector<HTMLElement>(FIRST_CONTROL_SELECTOR)?.focus();
    return card !== null;
  }
  // Whoever is writing is not answering.
  if (card !== mine && hasTypedText(at)) return false;
  const button = card?.querySelector<HTMLButtonElement>(`[data-answer=${what}]:enabled`);
  button?.click();
  return Boolean(button);
}
