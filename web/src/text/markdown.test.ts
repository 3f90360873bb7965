import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { renderMarkdown } from "./markdown";

const ATTACKS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "[click](javascript:alert(1))",
  "[click](JaVaScRiPt:alert(1))",
  "[click](data:text/html;base64,PHNjcmlwdD4=)",
  "![x](javascript:alert(1))",
  '<a href="vbscript:x" onclick="y">z</a>',
  "<svg/onload=alert(1)>",
  "<iframe srcdoc='<script>alert(1)</script>'>",
  '```"><script>alert(1)</script>\ncode\n```',
  "```html\n<script>alert(1)</script>\n```",
  '[x](https://ok.example "\\" onmouseover=alert(1) \\"")',
  "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
  "<form action=https://evil.example><input type=password></form>",
  "<style>body{display:none}</style>",
  "<base href=https://evil.example>",
  "<div style='position:fixed;inset:0'>x</div>",
];

function dangerous(made: string): string[] {
  const page = new DOMParser().parseFromString(made, "text/html");
  const found: string[] = [];
  for (const node of page.body.querySelectorAll("*")) {
    if (/^(script|iframe|img|svg|math|form|style|base|object|embed|link|meta)$/i.test(node.tagName)) found.push(node.tagName);
    for (const { name, value } of node.attributes) {
      if (/^on|^style$|^src/i.test(name)) found.push(`${node.tagName} ${name}`);
      if (name === "href" && !/^(https?|mailto):/i.test(value)) found.push(value);
    }
  }
  return found;
}

describe("what a model writes", () => {
  it.each(ATTACKS)("%s does nothing", (text) => {
    expect(dangerous(renderMarkdown(text))).toEqual([]);
  });

  it("does nothing, whatever it is", () => {
    const part = fc.oneof(fc.constantFrom(...ATTACKS), fc.string(), fc.constantFrom("```", "`", "[", "](", "<", ">", "\n", "|", "* "));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        expect(dangerous(renderMarkdown(parts.join("")))).toEqual([]);
      }),
    );
  });

  it("leaves out no level of headings, and never takes the page's own", () => {
    const levels = (text: string): string[] => [...renderMarkdown(text).matchAll(/<h(\d)>/g)].map((found) => found[1] ?? "");
    expect(levels("# a\n\n### b\n\n###### c\n\n## d")).toEqual(["2", "3", "4", "3"]);
    expect(levels("#### a")).toEqual(["2"]);
  });

  it("is shown as it was meant", () => {
    const made = renderMarkdown("# Title\n\n**bold** `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n\n```python\nprint(1)\n```");
    for (const part of ["<h2>", "<strong>", '<table tabindex="0">', "hljs-built_in", 'data-copy=""', "☑ "]) expect(made).toContain(part);
    expect(renderMarkdown("[a](https://x.example)")).toContain('rel="noopener noreferrer nofollow"');
    expect(renderMarkdown("<b>shown</b>")).toContain("&lt;b&gt;shown&lt;/b&gt;");
  });
});
