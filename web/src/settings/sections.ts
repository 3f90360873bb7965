/** The sections of the settings: each has an address, and its code is loaded when it is opened. */

import type { Component } from "svelte";

import { words } from "../words.settings";

export type SectionName = keyof typeof words.sections;

type Loaded = Promise<{ default: Component }>;

export const SECTIONS: Record<SectionName, { admin: boolean; load: () => Loaded }> = {
  config: { admin: false, load: () => import("./config/ConfigSection.svelte") },
  raw: { admin: true, load: () => import("./raw/RawSection.svelte") },
  services: { admin: true, load: () => import("./services/ServicesSection.svelte") },
  models: { admin: false, load: () => import("./models/ModelsSection.svelte") },
  tools: { admin: false, load: () => import("./tools/ToolsSection.svelte") },
  rules: { admin: false, load: () => import("./rules/RulesSection.svelte") },
  identity: { admin: false, load: () => import("./identity/IdentitySection.svelte") },
  access: { admin: false, load: () => import("./access/AccessSection.svelte") },
  git: { admin: false, load: () => import("./git/GitSection.svelte") },
  about: { admin: false, load: () => import("./about/AboutSection.svelte") },
};

export function sectionOf(name: string | undefined): SectionName {
  return name !== undefined && name in SECTIONS ? (name as SectionName) : "config";
}
