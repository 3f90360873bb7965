/** The configuration as it is being edited. It outlives the page: what is not saved is not lost by looking elsewhere. */

import { SvelteMap } from "svelte/reactivity";

import { getJson, Problem, requestJson } from "../../net/api";
import { joinSettingPath, splitSettingPath } from "../settings/setting-path";
import { unsavedChanges } from "../settings/unsaved-changes.svelte";
import { buildPatch, type ConfigView, type EditConflict, findConflicts, findSettledEdits, indexValues, type SettingEdit, type SettingValue } from "./config-edits";
import { type ConfigField, type ConfigGroup, FormBuilder, type JsonSchema } from "./config-schema";
import { explainInvalid, isSameValue, parseValue } from "./field-values";

export interface ConfigChange {
  keys: string[];
  restart: boolean;
  pending: string[];
  trouble: string;
}

class ConfigForm {
  view = $state.raw<ConfigView | null>(null);
  problem = $state.raw<Problem | null>(null);
  lastChange = $state.raw<ConfigChange | null>(null);
  conflicts = $state.raw<EditConflict[]>([]);
  /** Somebody else was faster, and nothing of one's own is touched by it. */
  changedElsewhere = $state(false);
  busy = $state(false);
  edits = new SvelteMap<string, SettingEdit>();
  /** Names that were added below what the user names, and have no value yet. */
  #newEntries = $state.raw<string[][]>([]);
  #form = $state.raw<FormBuilder | null>(null);
  #etag = "";
  /** Whether it was changed by somebody while one's own change was being saved. */
  #changedWhileSaving = false;

  values = $derived(this.view ? indexValues(this.view) : new Map<string, SettingValue>());
  tree: ConfigGroup | null = $derived(this.#form?.buildTree([...[...this.values.keys()].map(splitSettingPath), ...this.#newEntries]) ?? null);
  savableEdits = $derived([...this.edits].filter(([key, edit]) => !edit.problem && !this.conflicts.some((clash) => clash.key === key)));

  async load(): Promise<void> {
    await this.#attempt(async () => {
      if (!this.#form) this.#form = new FormBuilder(await fetchSchema());
      await this.#fetchValues();
    });
  }

  /** Somebody may have changed it. What is being edited stays, and is told where it is touched. */
  async checkForChanges(): Promise<void> {
    if (!this.view) return this.load();
    this.#changedWhileSaving = this.busy;
    if (this.busy) return;
    const [before, tag] = [this.values, this.#etag];
    try {
      await this.#fetchValues();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem = error;
    }
    if (tag !== this.#etag) this.#compareEdits(before);
  }

  async #fetchValues(): Promise<void> {
    const found = await requestJson<ConfigView>("config");
    this.#etag = found.etag;
    this.view = found.value;
  }

  typeValue(field: ConfigField, text: string): void {
    const { value, problem } = parseValue(field.kind, text);
    if (value === null && !problem) this.unsetValue(field);
    else this.#setEdit(field, { value, problem, unset: false, ...(problem ? { text } : {}) });
  }

  chooseValue(field: ConfigField, value: unknown): void {
    this.#setEdit(field, { value, problem: explainInvalid(field.kind, value), unset: false });
  }

  #setEdit(field: ConfigField, edit: SettingEdit): void {
    const now = this.values.get(field.key);
    this.lastChange = null;
    if (!edit.problem && now && !now.secret && isSameValue(now.value, edit.value)) this.dropEdit(field.key);
    else if (!edit.problem && now?.secret && edit.value === "") this.dropEdit(field.key);
    else this.edits.set(field.key, edit);
  }

  /** Takes a value out of the file: what counts then is the default. */
  unsetValue(field: ConfigField): void {
    if (this.isInFile(field.key)) this.edits.set(field.key, { value: field.fallback, problem: "", unset: true });
    else this.dropEdit(field.key);
  }

  isInFile(key: string): boolean {
    const file = this.view?.file ?? "";
    const own = this.values.get(key);
    return own ? own.from === file : [...this.values].some(([each, value]) => each.startsWith(`${key}.`) && value.from === file);
  }

  addEntry(path: string[]): void {
    this.#newEntries = [...this.#newEntries, path];
  }

  /** Takes away all that has a name, saved or not. */
  removeEntry(group: ConfigGroup): void {
    this.#newEntries = this.#newEntries.filter((path) => joinSettingPath(path) !== group.key);
    for (const key of this.edits.keys()) if (key.startsWith(`${group.key}.`)) this.edits.delete(key);
    if (this.isInFile(group.key)) this.edits.set(group.key, { value: null, problem: "", unset: true });
  }

  dropEdit(key: string): void {
    this.edits.delete(key);
    this.conflicts = this.conflicts.filter((clash) => clash.key !== key);
  }

  discardEdits(): void {
    this.edits.clear();
    this.conflicts = [];
    this.#newEntries = [];
    this.changedElsewhere = false;
    this.problem = null;
  }

  keepMine(key: string): void {
    this.conflicts = this.conflicts.filter((clash) => clash.key !== key);
  }

  /** Saves one change, or all that are good. */
  async save(key?: string): Promise<void> {
    const wanted = this.savableEdits.filter(([each]) => key === undefined || each === key);
    if (!wanted.length || this.busy) return;
    this.busy = true;
    await this.#attempt(async () => {
      const made = await requestJson<ConfigChange>("config", { method: "PATCH", body: buildPatch(wanted), ifMatch: this.#etag });
      await this.#fetchValues();
      for (const [each, edit] of wanted) if (isSameValue(this.edits.get(each), edit)) this.edits.delete(each);
      this.changedElsewhere = false;
      this.lastChange = made.value;
    });
    this.busy = false;
    if (this.#changedWhileSaving) await this.checkForChanges();
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    this.problem = null;
    this.lastChange = null;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 412) await this.#attempt(() => this.#refreshAfterConflict());
      else this.problem = error;
    }
  }

  async #refreshAfterConflict(): Promise<void> {
    const before = this.values;
    await this.#fetchValues();
    this.#compareEdits(before);
  }

  #compareEdits(before: Map<string, SettingValue>): void {
    for (const key of findSettledEdits(this.edits, this.values)) this.dropEdit(key);
    this.conflicts = findConflicts(this.edits, before, this.values);
    this.changedElsewhere = this.edits.size > 0 && !this.conflicts.length;
  }
}

async function fetchSchema(): Promise<JsonSchema> {
  const whole = await getJson<JsonSchema>("config/schema");
  const root = whole.$ref ? (whole.$defs?.[whole.$ref.split("/").at(-1) ?? ""] ?? {}) : whole;
  return { ...root, $defs: whole.$defs ?? {} };
}

export const configForm = new ConfigForm();
unsavedChanges.watch("config", () => configForm.edits.size > 0);
