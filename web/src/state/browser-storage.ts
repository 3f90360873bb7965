/** Small choices that this browser keeps. Where it keeps nothing, they last as long as the page. */

export function readPreference(name: string): string {
  try {
    return localStorage.getItem(`sylph-${name}`) ?? "";
  } catch {
    return "";
  }
}

export function savePreference(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(`sylph-${name}`, value);
    else localStorage.removeItem(`sylph-${name}`);
  } catch {
    // A browser that keeps nothing is not an error.
  }
}
