/** What the server tells of model services. */

export interface Trouble {
  kind: string;
  message: string;
  next?: string[];
}

export interface Provider {
  name: string;
  url: string;
  dialect: string;
  configured: boolean;
  reachable: boolean;
  models: number;
  key_from: string;
  trouble: Trouble | null;
}

export interface Connected {
  provider: string;
  kind: string;
  key_from: string;
  key: string;
  account: string;
  state: string;
  used: boolean;
  next: string;
}

export interface Credentials {
  connected: Connected[];
  keep: string;
}

export interface Saved {
  provider: string;
  tail: string;
  models?: number | null;
  comes_after: string;
}
