/** What a file is, by its name: how its text is coloured, and whether there is more to see than text. */

export type EditorLanguage = "css" | "html" | "javascript" | "json" | "markdown" | "python" | "toml" | "typescript" | "yaml" | "";

const ENDINGS: Record<string, EditorLanguage> = {
  css: "css",
  htm: "html",
  html: "html",
  js: "javascript",
  cjs: "javascript",
  mjs: "javascript",
  jsx: "javascript",
  json: "json",
  jsonl: "json",
  webmanifest: "json",
  md: "markdown",
  markdown: "markdown",
  py: "python",
  pyi: "python",
  svelte: "html",
  svg: "html",
  toml: "toml",
  ts: "typescript",
  mts: "typescript",
  tsx: "typescript",
  vue: "html",
  xml: "html",
  yaml: "yaml",
  yml: "yaml",
};

export function fileEnding(name: string): string {
  return (/[^/.]\.([^./]+)$/.exec(name)?.[1] ?? "").toLowerCase();
}

export function editorLanguage(name: string): EditorLanguage {
  return ENDINGS[fileEnding(name)] ?? "";
}

/** What can be shown beside a text's lines. */
export function previewKind(name: string): "markdown" | "picture" | "" {
  if (editorLanguage(name) === "markdown") return "markdown";
  return fileEnding(name) === "svg" ? "picture" : "";
}

const PICTURES = new Set(["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico", "avif"]);

export type EntryIconName = "folder" | "link" | "other" | "picture" | "file";

/** Which sign stands in front of a name. */
export function entryIcon(kind: string, name: string): EntryIconName {
  if (kind === "folder" || kind === "link" || kind === "other") return kind;
  return PICTURES.has(fileEnding(name)) ? "picture" : "file";
}
