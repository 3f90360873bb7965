/** The git remote of a workspace, as the server tells and takes it. */

export interface PublicKey {
  public: string;
  fingerprint: string;
}

export interface GitView {
  remote: string;
  url: string;
  branch: string;
  name: string;
  email: string;
  known_hosts: string[];
  key: PublicKey | null;
  stored: boolean;
  repository: boolean;
}

export interface GitForm {
  remote: string;
  url: string;
  branch: string;
  name: string;
  email: string;
  hosts: string;
  key: string;
}

export interface RemoteTestResult {
  ok: boolean;
  outcome: string;
  detail: string;
  next: string[];
  branches: string[];
  host_keys: { fingerprint: string; line: string }[];
}

export function toGitForm(view: GitView): GitForm {
  const { remote, url, branch, name, email } = view;
  return { remote, url, branch, name, email, hosts: view.known_hosts.join("\n"), key: "" };
}

export function parseHosts(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** What is sent: the key only where there is a new one, else the one there is stays. */
export function toGitBody(form: GitForm): Record<string, unknown> {
  const { hosts, key, ...rest } = form;
  return { ...rest, known_hosts: parseHosts(hosts), ...(key.trim() ? { key } : {}) };
}

export function hasGitChanges(form: GitForm, view: GitView): boolean {
  return JSON.stringify(toGitBody(form)) !== JSON.stringify(toGitBody(toGitForm(view)));
}
