/** What the server tells of model services. */

import type { ErrorReport } from "../../log/events";

export interface ProviderStatus {
  name: string;
  url: string;
  dialect: string;
  configured: boolean;
  reachable: boolean;
  models: number;
  key_from: string;
  trouble: ErrorReport | null;
}

export interface ConnectedService {
  provider: string;
  kind: string;
  key_from: string;
  key: string;
  account: string;
  state: string;
  used: boolean;
  next: string;
}

/** What can be connected. */
export interface ServiceOffer {
  name: string;
  title: string;
  /** Where it is asked; empty where that has to be told first. */
  url: string;
  entry: string;
  console: string;
}

export interface ServiceCredentials {
  offered: ServiceOffer[];
  connected: ConnectedService[];
  keep: string;
}

export interface SavedCredential {
  provider: string;
  tail: string;
  models?: number | null;
  comes_after: string;
}

/** Who is let in by a key, who is a server of one's own, and who wants a login. */
export function groupOffers(offered: readonly ServiceOffer[]): Record<"keys" | "own" | "logins", ServiceOffer[]> {
  const own = offered.filter((one) => one.entry === "none");
  const logins = offered.filter((one) => LOGIN_ENTRIES.includes(one.entry));
  return { keys: offered.filter((one) => !own.includes(one) && !logins.includes(one)), own, logins };
}

/** What no key opens. */
export const LOGIN_ENTRIES = ["google", "github", "chatgpt"];
