/** Registers the worker that keeps the app at hand; under the server's policy no other address may become a script. */

const WORKER_PATH = "/sw.js";

interface TrustedTypesFactory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

export async function registerServiceWorker(): Promise<void> {
  const factory = (globalThis as { trustedTypes?: TrustedTypesFactory }).trustedTypes;
  const policy = factory?.createPolicy("sylph-worker", {
    createScriptURL(url) {
      if (url !== WORKER_PATH) throw new TypeError(`${url} is not the app's worker`);
      return url;
    },
  });
  await navigator.serviceWorker?.register((policy?.createScriptURL(WORKER_PATH) ?? WORKER_PATH) as string);
}
