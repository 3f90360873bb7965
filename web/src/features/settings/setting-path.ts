/** The dotted path of a setting, as in TOML. */

const BARE = /^[A-Za-z0-9_-]+$/;

/** A key in its parts; as in TOML, a name that holds dots is quoted. */
export function splitSettingPath(key: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at <= key.length; ) {
    const quoted = key[at] === '"';
    let end = quoted ? at + 1 : at;
    while (end < key.length && (quoted ? key[end] !== '"' : key[end] !== ".")) end += quoted && key[end] === "\\" ? 2 : 1;
    parts.push(quoted ? unquoteName(key.slice(at, end + 1)) : key.slice(at, end));
    at = (quoted ? end + 1 : end) + 1;
  }
  return parts;
}

/** The server quotes a name, but escapes nothing in it. */
function unquoteName(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text.slice(1, -1);
  }
}

export function joinSettingPath(path: readonly string[]): string {
  return path.map((name) => (BARE.test(name) ? name : JSON.stringify(name))).join(".");
}
