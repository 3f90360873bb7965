/** The one change that makes a text of another: an editor's cursor and its folds stay where they can. */

export interface TextSplice {
  from: number;
  to: number;
  insert: string;
}

export function spliceBetween(before: string, after: string): TextSplice {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before.charCodeAt(from) === after.charCodeAt(from)) from++;
  let same = 0;
  while (same < most - from && before.charCodeAt(before.length - 1 - same) === after.charCodeAt(after.length - 1 - same)) same++;
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
