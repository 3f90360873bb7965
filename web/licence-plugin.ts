/** The licences of what is built into the app, as a module that the app can load. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Plugin } from "vite";

const ID = "virtual:licences";
const MODULES = join(import.meta.dirname, "node_modules");
// Of Svelte only what runs in the page goes along, and with it these two.
const RUNTIME = ["svelte", "clsx", "esm-env"];

interface Package {
  name: string;
  version: string;
  license?: string;
  dependencies?: Record<string, string>;
}

function readPackage(name: string): Package {
  return JSON.parse(readFileSync(join(MODULES, name, "package.json"), "utf8")) as Package;
}

function readLicence(name: string): string {
  const folder = join(MODULES, name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return file ? readFileSync(join(folder, file), "utf8").trim() : "";
}

function listPackages(): string[] {
  const own = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8")) as Package;
  const found = new Set<string>();
  const queue = Object.keys(own.dependencies ?? {});
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name) || !existsSync(join(MODULES, name))) continue;
    found.add(name);
    queue.push(...Object.keys(readPackage(name).dependencies ?? {}));
  }
  return [...found, ...RUNTIME.filter((name) => existsSync(join(MODULES, name)))].sort();
}

export function licencePlugin(): Plugin {
  return {
    name: "licences",
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    load(id) {
      if (id !== `\0${ID}`) return undefined;
      const all = listPackages().map((name) => {
        const { version, license = "" } = readPackage(name);
        return { name, version, licence: license, text: readLicence(name) };
      });
      return `export const all = ${JSON.stringify(all)};`;
    },
  };
}
