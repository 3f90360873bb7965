/** Registers the worker that keeps the app at hand; under the server's policy no other address may become a script. */

const PLACE = "/sw.js";

interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

export async function keepAtHand(): Promise<void> {
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  const policy = factory?.createPolicy("sylph-worker", {
    createScriptURL(url) {
      if (url !== PLACE) throw new TypeError(`${url} is not the app's worker`);
      return url;
    },
  });
  await navigator.serviceWorker?.register((policy?.createScriptURL(PLACE) ?? PLACE) as string);
}
