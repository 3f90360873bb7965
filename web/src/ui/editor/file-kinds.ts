/** What a file is, by its name: how its text is coloured, and whether there is more to see than text. */

export type Language = "css" | "html" | "javascript" | "json" | "markdown" | "python" | "toml" | "typescript" | "yaml" | "";

const ENDINGS: Record<string, Language> = {
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

export function ending(name: string): string {
  return (/[^/.]\.([^./]+)$/.exec(name)?.[1] ?? "").toLowerCase();
}

export function language(name: string): Language {
  return ENDINGS[ending(name)] ?? "";
}

/** What can be shown beside a text's lines. */
export function preview(name: string): "markdown" | "picture" | "" {
  if (language(name) === "markdown") return "markdown";
  return ending(name) === "svg" ? "picture" : "";
}

const PICTURES = new Set(["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico", "avif"]);

export type Sign = "folder" | "link" | "other" | "picture" | "file";

/** Which sign stands in front of a name. */
export function sign(kind: string, name: string): Sign {
  if (kind === "folder" || kind === "link" || kind === "other") return kind;
  return PICTURES.has(ending(name)) ? "picture" : "file";
}
