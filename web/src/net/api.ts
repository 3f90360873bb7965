/** Requests to the server. Whatever goes wrong becomes a `Problem`, with what to do about it. */

import { explainRequestError } from "../text/request-errors";

export interface ProblemDetails {
  title: string;
  status: number;
  detail: string;
  kind: string;
  next?: string[];
  details?: Record<string, string>;
}

export class Problem extends Error {
  readonly status: number;
  readonly kind: string;
  readonly next: string[];
  readonly details: Record<string, string>;

  constructor(body: ProblemDetails) {
    super(explainRequestError(body.detail || body.title));
    this.status = body.status;
    this.kind = body.kind;
    this.next = body.next ?? [];
    this.details = body.details ?? {};
  }
}

/** Told when the server does not know us any more: the page asks to log in. */
export const loginLost = new EventTarget();

export interface TaggedAnswer<T> {
  value: T;
  etag: string;
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  raw?: BodyInit;
  ifMatch?: string;
  /** `*` for what must not be there yet; a version for what need not be sent again: the answer is then a 304. */
  ifNoneMatch?: string;
  /** Makes repeating it harmless; kept by the caller where it may have to. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export async function requestJson<T>(path: string, options: RequestOptions = {}): Promise<TaggedAnswer<T>> {
  const response = await sendRequest(path, options);
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw toOfflineProblem(error);
  }
  return { value: (text ? JSON.parse(text) : undefined) as T, etag: response.headers.get("etag") ?? "" };
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await requestJson<T>(path, signal ? { signal } : {})).value;
}

/** A list that comes as one page. */
export async function getItems<T>(path: string, signal?: AbortSignal): Promise<T[]> {
  return (await getJson<{ items: T[] }>(path, signal)).items;
}

export async function postJson<T>(path: string, body: unknown = {}, idempotencyKey: string = crypto.randomUUID()): Promise<T> {
  return (await requestJson<T>(path, { method: "POST", body, idempotencyKey })).value;
}

export async function patchJson<T>(path: string, body: unknown, ifMatch = ""): Promise<T> {
  return (await requestJson<T>(path, { method: "PATCH", body, ifMatch })).value;
}

export async function sendDelete(path: string): Promise<void> {
  await requestJson(path, { method: "DELETE" });
}

/** The response itself, once it is a good one. */
export async function sendRequest(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers = new Headers();
  if (options.body !== undefined) headers.set("content-type", "application/json");
  if (options.ifMatch) headers.set("if-match", options.ifMatch);
  if (options.ifNoneMatch) headers.set("if-none-match", options.ifNoneMatch);
  if (options.idempotencyKey) headers.set("idempotency-key", options.idempotencyKey);
  let response: Response;
  try {
    response = await fetch(path.startsWith("/") ? path : `/api/v1/${path}`, {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? (options.raw ?? null) : JSON.stringify(options.body),
      signal: options.signal ?? null,
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (error) {
    throw toOfflineProblem(error);
  }
  if (response.ok || (response.status === 304 && options.ifNoneMatch)) return response;
  if (response.status === 401) loginLost.dispatchEvent(new Event("lost"));
  throw new Problem(await readProblem(response));
}

/** What it means that an answer did not come, or not whole. */
function toOfflineProblem(error: unknown): unknown {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  return new Problem({ title: "Offline", status: 0, detail: "The server does not answer.", kind: "offline" });
}

async function readProblem(response: Response): Promise<ProblemDetails> {
  try {
    return (await response.json()) as ProblemDetails;
  } catch {
    return { title: response.statusText, status: response.status, detail: response.statusText, kind: "failed" };
  }
}

/** A path with its parts made safe. */
export function apiPath(parts: TemplateStringsArray, ...values: (string | number)[]): string {
  return parts.reduce((made, part, index) => made + part + (index < values.length ? encodeURIComponent(values[index] ?? "") : ""), "");
}
