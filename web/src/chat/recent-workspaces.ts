/** Folders that were worked in, the latest first. */
export function listRecentWorkspaces(rows: readonly { workspace: string; updated: number }[], most = 20): string[] {
  const latest = [...rows].sort((a, b) => b.updated - a.updated).map((row) => row.workspace);
  return [...new Set(latest.filter(Boolean))].slice(0, most);
}
