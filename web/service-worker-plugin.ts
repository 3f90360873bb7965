/** Makes the service worker of a build: it is told which files the build has. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Plugin } from "vite";

export function serviceWorkerPlugin(root: string): Plugin {
  return {
    name: "service-worker",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const entry = Object.values(bundle).find((part) => part.type === "chunk" && part.isEntry)?.fileName ?? "";
        const parts = Object.keys(bundle).filter((name) => name.startsWith("assets/") && name !== entry).toSorted();
        const icons = readdirSync(join(root, "public/icons")).map((name) => `icons/${name}`).toSorted();
        // The page comes first, and then what it begins with.
        const files = ["/", `/${entry}`, ...[...parts, ...icons, "manifest.webmanifest"].map((name) => `/${name}`)];
        const inputs = [readFileSync(join(root, "index.html")), files.join(), ...icons.map((name) => readFileSync(join(root, "public", name)))];
        const build = createHash("sha256");
        for (const one of inputs) build.update(one);
        const source = readFileSync(join(root, "service-worker.js"), "utf8")
          .replace("__BUILD__", build.digest("hex").slice(0, 12))
          .replace("= __FILES__", "= " + JSON.stringify(files));
        this.emitFile({ type: "asset", fileName: "sw.js", source });
      },
    },
  };
}
