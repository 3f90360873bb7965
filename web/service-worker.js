// Keeps the app itself at hand, so that it opens without a network. What the server says is never kept.
//
// A build of the app is kept whole or not at all, under its own name. The one before stays as well: a page of it that
// is still open finds its parts. Nothing is added later, so there is never a page with parts of another build.
const BUILD = "__BUILD__";
/* global __FILES__ -- put in by the build */
const FILES = __FILES__;
const CACHE_NAME = `shell-${BUILD}`;
/** So long the server may take for a page before the one that is kept is shown. */
const PAGE_TIMEOUT_MS = 5000;

self.addEventListener("install", (event) => {
  event.waitUntil(cacheBuild().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(deleteOldCaches().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && !/^\/(login|docs|redoc|api|v1|metrics|openapi\.json)(\/|$)/.test(url.pathname)) event.respondWith(fetchPage(request));
  else if (/^\/(assets|icons)\//.test(url.pathname)) event.respondWith(fetchAsset(request));
});

async function cacheBuild() {
  const cache = await caches.open(CACHE_NAME);
  // `reload` passes by what the browser itself has kept: the page must be the one of these parts.
  const answers = [];
  // A few at a time: whoever looks at the page comes first.
  for (let at = 0; at < FILES.length; at += 4) {
    answers.push(...(await Promise.all(FILES.slice(at, at + 4).map((file) => fetch(file, { cache: "reload" })))));
  }
  const whole = answers.every((answer) => answer.ok) && (await answers[0].clone().text()).includes(FILES[1]);
  if (!whole) {
    await caches.delete(CACHE_NAME);
    throw new Error("The app changed while it was being kept.");
  }
  await Promise.all(answers.map((answer, at) => cache.put(FILES[at], answer)));
}

/** All builds go but this one and the one before it. */
async function deleteOldCaches() {
  const names = (await caches.keys()).filter((name) => name.startsWith("shell-") && name !== CACHE_NAME);
  await Promise.all(names.slice(0, -1).map((name) => caches.delete(name)));
}

/** The page as the server has it now; the one kept, where it does not answer. */
async function fetchPage(request) {
  const fetchCached = async () => (await (await caches.open(CACHE_NAME)).match("/")) ?? Response.error();
  const late = new Promise((done) => setTimeout(done, PAGE_TIMEOUT_MS));
  try {
    return (await Promise.race([fetch(request), late])) ?? (await fetchCached());
  } catch {
    return fetchCached();
  }
}

/** Parts never change under their names: any build that has one has the right one. */
async function fetchAsset(request) {
  return (await caches.match(request, { ignoreVary: true })) ?? fetch(request);
}
