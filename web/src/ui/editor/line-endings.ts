/** Line ends: an editor knows one kind, files know more. */

/**
 * Whether a text's ends can be kept only by leaving each as it is. The server gives a text whose lines all end alike their
 * ends back; a text that mixes them would come back changed in lines that nobody touched.
 */
export function hasMixedLineEnds(text: string): boolean {
  const bare = text.replace(/\r\n/g, "");
  return bare.includes("\r") || (bare.includes("\n") && bare.length < text.length);
}

/** The text as the editor has it and gives it back. */
export function normalizeLineEnds(text: string): string {
  return hasMixedLineEnds(text) ? text : text.replace(/\r\n/g, "\n");
}
