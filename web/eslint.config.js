import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";

import config from "./svelte.config.js";

export default ts.config(
  { ignores: ["node_modules/", "public/", "src/log/events.ts", "src/net/schema.ts"] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig: config } },
    rules: {
      // What is shown as HTML has gone through the one place that cleans it: src/text/markdown.ts.
      "svelte/no-at-html-tags": "off",
    },
  },
  { rules: { eqeqeq: "error", "no-console": "error" } },
);
