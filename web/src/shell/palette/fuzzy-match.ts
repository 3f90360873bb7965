/** What in a list fits what was typed, the best first. */

import { foldLetters } from "../sidebar/session-lines";

/** How well a name fits; 0 where it does not. Words that begin with what was typed count most, letters in order least. */
export function rankMatch(name: string, typed: string): number {
  const wanted = foldLetters(typed).trim();
  if (!wanted) return 1;
  const known = foldLetters(name);
  if (known.startsWith(wanted)) return 5;
  const starts = known.split(/[^\p{L}\p{N}]+/u);
  const words = wanted.split(/\s+/);
  if (words.every((word) => starts.some((start) => start.startsWith(word)))) return 4;
  if (known.includes(wanted)) return 3;
  if (words.every((word) => known.includes(word))) return 2;
  return hasLettersInOrder(known, wanted.replaceAll(/\s/g, "")) ? 1 : 0;
}

function hasLettersInOrder(known: string, wanted: string): boolean {
  let at = 0;
  for (const letter of wanted) {
    at = known.indexOf(letter, at) + 1;
    if (!at) return false;
  }
  return true;
}

export function bestMatches<T>(items: Iterable<T>, nameOf: (item: T) => string, typed: string, most: number): T[] {
  const ranked: { item: T; rank: number; at: number }[] = [];
  let at = 0;
  for (const item of items) {
    const found = rankMatch(nameOf(item), typed);
    if (found) ranked.push({ item, rank: found, at: at++ });
  }
  ranked.sort((a, b) => b.rank - a.rank || a.at - b.at);
  return ranked.slice(0, most).map((one) => one.item);
}
