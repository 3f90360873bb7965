/** Tools as the server tells them, and how their badges look. */

export interface ToolView {
  name: string;
  plugin: string;
  description: string;
  effect: string;
  risk: string;
  judged: boolean;
  recourse: string;
  decision: string;
  reason: string;
  badges: string[];
  schema: unknown;
}

export const effectClass = (effect: string): string => (effect === "read" ? "" : effect === "write" ? "warn" : "bad");
export const riskClass = (risk: string): string => (risk === "safe" ? "good" : risk === "caution" ? "warn" : "bad");
export const decisionClass = (decision: string): string => (decision === "allow" ? "good" : decision === "ask" ? "warn" : "bad");
