/** Markdown as HTML that can do nothing but be read: the one place where text becomes markup. */

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";

import { highlightCode } from "./highlight";

const HARMLESS = /^(?:https?|mailto):/i;
const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "button", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol",
    "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["align", "aria-label", "checked", "class", "data-copy", "disabled", "href", "rel", "start", "target", "tabindex", "title", "type"],
  ALLOWED_URI_REGEXP: HARMLESS,
  RETURN_TRUSTED_TYPE: true,
  // These are no addresses, whatever they say.
  ADD_URI_SAFE_ATTR: ["align", "checked", "data-copy", "disabled", "rel", "start", "tabindex", "target", "type"],
};

/** How deep the last heading was. */
let level = 1;

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    code({ text, lang }: Tokens.Code): string {
      const language = (lang ?? "").trim().split(/\s+/)[0] ?? "";
      const label = language ? `<span class="language">${escapeHtml(language)}</span>` : "";
      return `<div class="code"><div class="bar">${label}<button type="button" class="copy" data-copy="" aria-label="Copy"></button></div><pre tabindex="0"><code>${highlightCode(text, language)}</code></pre></div>`;
    },
    // The page has its own first heading, and none is left out on the way down.
    heading({ tokens, depth }: Tokens.Heading): string {
      level = Math.min(depth + 1, level + 1, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    // It cannot be ticked here.
    checkbox({ checked }: Tokens.Checkbox): string {
      return checked ? "☑ " : "☐ ";
    },
    // What a model writes as HTML is text like any other.
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return escapeHtml(text);
    },
    link({ href, title, tokens }: Tokens.Link): string {
      const inner = this.parser.parseInline(tokens);
      const named = title ? ` title="${escapeHtml(title)}"` : "";
      return HARMLESS.test(href) ? `<a href="${escapeHtml(href)}"${named}>${inner}</a>` : inner;
    },
    // A picture would be fetched from wherever the model says, and tell that it was.
    image({ href, text }: Tokens.Image): string {
      return HARMLESS.test(href) ? `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>` : escapeHtml(text);
    },
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  // A wide one is scrolled, also by keys.
  if (node.tagName === "TABLE") node.setAttribute("tabindex", "0");
});

/** In browsers that know trusted types it is one, and the server's policy lets nothing else become markup. */
export function renderMarkdown(text: string): string {
  level = 1;
  return DOMPurify.sanitize(marked.parse(text, { async: false }), ALLOWED) as unknown as string;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
