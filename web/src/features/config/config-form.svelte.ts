/** The configuration as it is being edited. It outlives the page: what is not saved is not lost by looking elsewhere. */

import { SvelteMap } from "svelte/reactivity";

import { ask, get, Problem } from "../../net/api";
import { dotted, split } from "../settings/setting-path";
import { unsavedChanges } from "../settings/unsaved-changes.svelte";
import { clashesOf, patchOf, settledOf, valuesOf, type Clash, type ConfigView, type Edit, type Value } from "./config-edits";
import { Form, type Field, type Group, type Schema } from "./config-schema";
import { read, same, wrong } from "./field-values";

export interface Changed {
  keys: string[];
  restart: boolean;
  pending: string[];
  trouble: string;
}

class Config {
  view = $state.raw<ConfigView | null>(null);
  problem = $state.raw<Problem | null>(null);
  changed = $state.raw<Changed | null>(null);
  clashes = $state.raw<Clash[]>([]);
  /** Somebody else was faster, and nothing of one's own is touched by it. */
  apart = $state(false);
  busy = $state(false);
  edits = new SvelteMap<string, Edit>();
  /** Names that were added below what the user names, and have no value yet. */
  #added = $state.raw<string[][]>([]);
  #form = $state.raw<Form | null>(null);
  #etag = "";
  /** Whether it was changed by somebody while one's own change was being saved. */
  #missed = false;

  values = $derived(this.view ? valuesOf(this.view) : new Map<string, Value>());
  tree: Group | null = $derived(this.#form?.tree([...[...this.values.keys()].map(split), ...this.#added]) ?? null);
  ready = $derived([...this.edits].filter(([key, edit]) => !edit.problem && !this.clashes.some((clash) => clash.key === key)));

  async load(): Promise<void> {
    await this.#try(async () => {
      if (!this.#form) this.#form = new Form(await schema());
      await this.#look();
    });
  }

  /** Somebody may have changed it. What is being edited stays, and is told where it is touched. */
  async news(): Promise<void> {
    if (!this.view) return this.load();
    this.#missed = this.busy;
    if (this.busy) return;
    const [before, tag] = [this.values, this.#etag];
    try {
      await this.#look();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem = error;
    }
    if (tag !== this.#etag) this.#compare(before);
  }

  async #look(): Promise<void> {
    const found = await ask<ConfigView>("config");
    this.#etag = found.etag;
    this.view = found.value;
  }

  type(field: Field, text: string): void {
    const { value, problem } = read(field.kind, text);
    if (value === null && !problem) this.unset(field);
    else this.#keep(field, { value, problem, unset: false, ...(problem ? { text } : {}) });
  }

  choose(field: Field, value: unknown): void {
    this.#keep(field, { value, problem: wrong(field.kind, value), unset: false });
  }

  #keep(field: Field, edit: Edit): void {
    const now = this.values.get(field.key);
    this.changed = null;
    if (!edit.problem && now && !now.secret && same(now.value, edit.value)) this.drop(field.key);
    else if (!edit.problem && now?.secret && edit.value === "") this.drop(field.key);
    else this.edits.set(field.key, edit);
  }

  /** Takes a value out of the file: what counts then is the default. */
  unset(field: Field): void {
    if (this.inFile(field.key)) this.edits.set(field.key, { value: field.fallback, problem: "", unset: true });
    else this.drop(field.key);
  }

  inFile(key: string): boolean {
    const file = this.view?.file ?? "";
    const own = this.values.get(key);
    return own ? own.from === file : [...this.values].some(([each, value]) => each.startsWith(`${key}.`) && value.from === file);
  }

  add(path: string[]): void {
    this.#added = [...this.#added, path];
  }

  /** Takes away all that has a name, saved or not. */
  removeNamed(group: Group): void {
    this.#added = this.#added.filter((path) => dotted(path) !== group.key);
    for (const key of this.edits.keys()) if (key.startsWith(`${group.key}.`)) this.edits.delete(key);
    if (this.inFile(group.key)) this.edits.set(group.key, { value: null, problem: "", unset: true });
  }

  drop(key: string): void {
    this.edits.delete(key);
    this.clashes = this.clashes.filter((clash) => clash.key !== key);
  }

  discard(): void {
    this.edits.clear();
    this.clashes = [];
    this.#added = [];
    this.apart = false;
    this.problem = null;
  }

  keepMine(key: string): void {
    this.clashes = this.clashes.filter((clash) => clash.key !== key);
  }

  /** Saves one change, or all that are good. */
  async save(key?: string): Promise<void> {
    const wanted = this.ready.filter(([each]) => key === undefined || each === key);
    if (!wanted.length || this.busy) return;
    this.busy = true;
    await this.#try(async () => {
      const made = await ask<Changed>("config", { method: "PATCH", body: patchOf(wanted), ifMatch: this.#etag });
      await this.#look();
      for (const [each, edit] of wanted) if (same(this.edits.get(each), edit)) this.edits.delete(each);
      this.apart = false;
      this.changed = made.value;
    });
    this.busy = false;
    if (this.#missed) await this.news();
  }

  async #try(work: () => Promise<void>): Promise<void> {
    this.problem = null;
    this.changed = null;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 412) await this.#try(() => this.#collide());
      else this.problem = error;
    }
  }

  async #collide(): Promise<void> {
    const before = this.values;
    await this.#look();
    this.#compare(before);
  }

  #compare(before: Map<string, Value>): void {
    for (const key of settledOf(this.edits, this.values)) this.drop(key);
    this.clashes = clashesOf(this.edits, before, this.values);
    this.apart = this.edits.size > 0 && !this.clashes.length;
  }
}

async function schema(): Promise<Schema> {
  const whole = await get<Schema>("config/schema");
  const root = whole.$ref ? (whole.$defs?.[whole.$ref.split("/").at(-1) ?? ""] ?? {}) : whole;
  return { ...root, $defs: whole.$defs ?? {} };
}

export const config = new Config();
unsavedChanges.watch("config", () => config.edits.size > 0);
