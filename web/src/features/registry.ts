/**
 * Every page beside the chat, one line each. The shell builds its navigation, keys, palette and addresses from this
 * list, the settings their sections. A page is taken out by deleting its folder and its line.
 */

import type { Component } from "svelte";

export interface PageModule {
  /** Made anew for each session, where it shows one. */
  default: Component<Record<string, never>>;
}

export interface PageEntry {
  name: string;
  title: string;
  /** Its address: the first part of the path, and for a section of the settings the second. */
  route: string;
  /** The icon that stands for it, by the name that the icon set gives it. */
  icon: string;
  /** Keys that open it, one after the other, and what the list of keys says of them. */
  shortcut?: { keys: string[]; help: string };
}

export interface Feature extends PageEntry {
  /** Where it is found: in the navigation, at each session, or in the settings. */
  place: "navigation" | "session" | "settings";
  load: () => Promise<PageModule>;
  /** What it is for, where it stands below its title or in the palette. */
  about?: string;
  /** The scope one needs to see it. */
  scope?: string;
}

/** The chat is part of the app itself, and where one is without an address. */
export const CHAT_PAGE: PageEntry = { name: "chat", title: "Chat", route: "chat", icon: "message-square", shortcut: { keys: ["g", "c"], help: "Go to the chat" } };

export const FEATURES: readonly Feature[] = [
  { name: "timeline", title: "Timeline", route: "timeline", icon: "clock", place: "session", about: "Show the timeline", load: () => import("./timeline/TimelinePage.svelte") },
  { name: "dashboard", title: "Dashboard", route: "dashboard", icon: "layout-dashboard", place: "navigation", shortcut: { keys: ["g", "d"], help: "Go to the dashboard" }, load: () => import("./dashboard/DashboardPage.svelte") },
  { name: "files", title: "Files", route: "files", icon: "folder", place: "navigation", shortcut: { keys: ["g", "f"], help: "Go to the files" }, load: () => import("./files/FilesPage.svelte") },
  { name: "settings", title: "Settings", route: "settings", icon: "settings", place: "navigation", shortcut: { keys: ["g", "s"], help: "Go to the settings" }, load: () => import("./settings/SettingsPage.svelte") },
  { name: "config", title: "Configuration", route: "settings/config", icon: "settings", place: "settings", about: "Everything that can be set, and where each value comes from.", load: () => import("./config/ConfigSection.svelte") },
  { name: "config-file", title: "Config file", route: "settings/raw", icon: "file-text", place: "settings", scope: "admin", about: "The file itself, with its comments.", load: () => import("./config/ConfigFileSection.svelte") },
  { name: "connect", title: "Services", route: "settings/services", icon: "plug", place: "settings", scope: "admin", about: "Who gives Sylph models, and the keys for them.", load: () => import("./connect/ConnectSection.svelte") },
  { name: "models", title: "Models and roles", route: "settings/models", icon: "cpu", place: "settings", about: "What there is to think with, and which model does what.", load: () => import("./models/ModelsSection.svelte") },
  { name: "tools", title: "Tools", route: "settings/tools", icon: "wrench", place: "settings", about: "What the agent can do, and what would be decided about it now.", load: () => import("./tools/ToolsSection.svelte") },
  { name: "policy", title: "Rules and approvals", route: "settings/rules", icon: "shield", place: "settings", about: "What is allowed, asked about or denied.", load: () => import("./policy/PolicySection.svelte") },
  { name: "identity", title: "Identity", route: "settings/identity", icon: "user", place: "settings", about: "What every session is told about Sylph, your rules and its surroundings.", load: () => import("./identity/IdentitySection.svelte") },
  { name: "access", title: "Keys and devices", route: "settings/access", icon: "key", place: "settings", about: "Who may come in.", load: () => import("./access/AccessSection.svelte") },
  { name: "git", title: "Git remote", route: "settings/git", icon: "git-branch", place: "settings", about: "Where a workspace's commits go.", load: () => import("./git/GitSection.svelte") },
  { name: "about", title: "About", route: "settings/about", icon: "info", place: "settings", about: "This installation, and how it is.", load: () => import("./about/AboutSection.svelte") },
];

/** The features that are found in one place, in their order. */
export function listFeatures(place: Feature["place"]): Feature[] {
  return FEATURES.filter((feature) => feature.place === place);
}

/** What has an address of its own, in the order of the navigation. */
export const PAGES: readonly PageEntry[] = [CHAT_PAGE, ...FEATURES.filter((feature) => feature.place !== "settings")];

export function findFeature(route: string): Feature | undefined {
  return FEATURES.find((feature) => feature.route === route);
}

/** Whether the address of a page goes on with a session. */
export function showsSession(route: string): boolean {
  return route === CHAT_PAGE.route || findFeature(route)?.place === "session";
}

/** Whether an address of the app leads to a page that there is. */
export function isPagePath(path: string): boolean {
  const [page = "", section] = path.split(/[?#]/)[0]?.split("/").filter(Boolean) ?? [];
  if (!PAGES.some(({ route }) => route === page)) return false;
  return section === undefined || !listFeatures("settings").some(({ route }) => route.startsWith(`${page}/`)) || findFeature(`${page}/${section}`) !== undefined;
}
