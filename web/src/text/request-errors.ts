/** A message that speaks of the body of a request, for somebody who wrote none. */

import { hintWords } from "../words/hints";

export function explainRequestError(message: string): string {
  const read = /^The body cannot be read: (.*)$/s.exec(message)?.[1];
  if (read === undefined) return message;
  const most = /^Expected `str` of length <= (\d+)/.exec(read)?.[1];
  return most ? hintWords.long(Number(most).toLocaleString("en")) : hintWords.misread(read.replace(/ - at `\$\.?([^`]*)`/, (_, where: string) => (where ? ` (${where})` : "")));
}
