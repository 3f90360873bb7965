/** Credentials, as the server tells them. */

export interface Credential {
  id: string;
  kind: "token" | "cookie" | "link";
  name: string;
  scopes: string[];
  created: number;
  expires?: number;
  used?: number;
}

export interface LoginLink {
  url: string;
  expires: number;
  fingerprint?: string;
  /** The rows of a QR code: 1 is dark. */
  qr?: string[];
}

export const SCOPES = ["read", "chat", "approve", "admin", "hook"] as const;

/** Why these scopes cannot go together; empty where they can. */
export function explainBadScopes(scopes: readonly string[], say: { noScope: string; hookAlone: string }): string {
  if (!scopes.length) return say.noScope;
  return scopes.includes("hook") && scopes.length > 1 ? say.hookAlone : "";
}

/** The dark squares of a QR code as one path, a run at a time. */
export function drawQrPath(rows: readonly string[]): string {
  return rows.map((row, y) => [...row.matchAll(/1+/g)].map((run) => `M${run.index} ${y}h${run[0].length}v1h-${run[0].length}z`).join("")).join("");
}

/** Whether an address is for this machine only. */
export function isLoopbackUrl(url: string): boolean {
  return /^(?:localhost|127\.|\[::1\])/.test(new URL(url).host);
}
