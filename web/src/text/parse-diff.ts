/** Unified diffs, read: which files, which lines, with their numbers. */

export type DiffSign = " " | "+" | "-" | "@" | "\\";

export interface DiffLine {
  sign: DiffSign;
  text: string;
  /** Line numbers before and after; 0 where it has none. */
  old: number;
  now: number;
}

export interface FileDiff {
  path: string;
  added: number;
  removed: number;
  lines: DiffLine[];
}

export interface DiffPiece {
  /** What is no diff: told before or between. */
  text: string;
  files: FileDiff[];
}

const NEW = /^(.+): new file, \d+ lines?$/;
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Text that may have diffs in it, taken apart in its order. */
export function parseDiffs(text: string): DiffPiece[] {
  const found: DiffPiece[] = [];
  let plain: string[] = [];
  let files: FileDiff[] = [];
  const close = (): void => {
    const said = plain.join("\n").trim();
    if (said || files.length) found.push({ text: said, files });
    plain = [];
    files = [];
  };
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    const fresh = NEW.exec(lines[at] ?? "")?.[1];
    if (fresh !== undefined || isDiffStart(lines, at)) {
      const [file, next] = fresh === undefined ? parseFileDiff(lines, at) : parseNewFile(fresh, lines, at + 1);
      files.push(file);
      at = next;
    } else {
      // What follows a diff belongs to the next piece.
      if (files.length && lines[at]?.trim()) close();
      plain.push(lines[at] ?? "");
      at++;
    }
  }
  close();
  return found;
}

export function hasDiff(text: string): boolean {
  return parseDiffs(text).some((piece) => piece.files.length > 0);
}

function isDiffStart(lines: string[], at: number): boolean {
  return (lines[at] ?? "").startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ");
}

function parseFileDiff(lines: string[], at: number): [FileDiff, number] {
  const before = parsePath(lines[at] ?? "");
  const after = parsePath(lines[at + 1] ?? "");
  const file: FileDiff = { path: after === "/dev/null" ? before : after, added: 0, removed: 0, lines: [] };
  at += 2;
  while (at < lines.length) {
    const head = HUNK.exec(lines[at] ?? "");
    if (!head) break;
    let old = Number(head[1]);
    let now = Number(head[3]);
    let oldLeft = Number(head[2] ?? 1);
    let nowLeft = Number(head[4] ?? 1);
    file.lines.push({ sign: "@", text: lines[at] ?? "", old: 0, now: 0 });
    at++;
    // The counts say how long a hunk is: a removed line may look like the head of the next file.
    for (; at < lines.length && (oldLeft > 0 || nowLeft > 0 || lines[at]?.startsWith("\\")); at++) {
      const line = lines[at] ?? "";
      const sign = line[0] ?? " ";
      const text = line.slice(1);
      if (sign === "+") {
        file.lines.push({ sign, text, old: 0, now: now++ });
        file.added++;
        nowLeft--;
      } else if (sign === "-") {
        file.lines.push({ sign, text, old: old++, now: 0 });
        file.removed++;
        oldLeft--;
      } else if (sign === "\\") {
        file.lines.push({ sign, text: text.trim(), old: 0, now: 0 });
      } else if (sign === " ") {
        file.lines.push({ sign, text, old: old++, now: now++ });
        oldLeft--;
        nowLeft--;
      } else {
        return [file, at];
      }
    }
  }
  return [file, at];
}

/** A new file, which is told by how it begins. */
function parseNewFile(path: string, lines: string[], at: number): [FileDiff, number] {
  const file: FileDiff = { path, added: 0, removed: 0, lines: [] };
  for (; lines[at]?.startsWith("+"); at++) {
    file.added++;
    file.lines.push({ sign: "+", text: lines[at]?.slice(1) ?? "", old: 0, now: file.added });
  }
  const rest = /^… (\d+) more lines?$/.exec(lines[at] ?? "");
  if (rest) {
    file.added += Number(rest[1]);
    file.lines.push({ sign: "@", text: lines[at] ?? "", old: 0, now: 0 });
    at++;
  }
  return [file, at];
}

function parsePath(line: string): string {
  const path = line.slice(4).split("\t")[0] ?? "";
  return path.replace(/^[ab]\//, "");
}
