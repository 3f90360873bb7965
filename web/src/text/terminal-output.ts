/** What programs print, without what only a terminal understands. */

// eslint-disable-next-line no-control-regex -- these characters are what it is about
const CODES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]/g;

export function stripTerminalCodes(text: string): string {
  const bare = text.includes("\r") ? text.replace(/\r\n/g, "\n").split("\n").map(lastOverwrite).join("\n") : text;
  return bare.replace(CODES, "");
}

/** A line that was written over shows what was written last. */
function lastOverwrite(line: string): string {
  return line.split("\r").findLast((piece) => piece !== "") ?? "";
}
