import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { joinSettingPath, splitSettingPath } from "../settings/setting-path";
import { filterGroup, formatLabel, FormBuilder, type JsonSchema, listFields } from "./config-schema";

const SCHEMA: JsonSchema = {
  properties: {
    model: { type: "string", description: "Default model.", default: "" },
    mode: { enum: ["ask", "plan"], default: "ask" },
    limits: { $ref: "#/$defs/Limits", default: { rounds: 250 } },
    providers: { type: "object", additionalProperties: { $ref: "#/$defs/Provider" }, default: {} },
    rules: { type: "array", items: { $ref: "#/$defs/Rule" }, default: [] },
    hosts: { type: "array", items: { type: "string" }, default: ["a"] },
  },
  $defs: {
    Limits: {
      title: "Limits",
      type: "object",
      properties: {
        rounds: { type: "integer", minimum: 1, description: "Model calls in one turn.", default: 250 },
        turn_seconds: { anyOf: [{ type: "number", exclusiveMinimum: 0, description: "How long." }, { type: "null" }], default: null },
      },
    },
    Provider: {
      title: "Provider",
      type: "object",
      properties: {
        base_url: { type: "string", default: "" },
        websocket: { type: "boolean", default: false },
        headers: { type: "object", additionalProperties: { type: "string", description: "A header." }, default: {} },
      },
    },
    Rule: { title: "Rule", type: "object", properties: { decision: { enum: ["allow", "deny"] }, tool: { type: "string", default: "*" } }, required: ["decision"] },
  },
};

const tree = new FormBuilder(SCHEMA).buildTree([["providers", "my.own", "base_url"], ["providers", "my.own", "headers", "X-A"], ["providers", "openai"], ["limits", "rounds"]]);
const fields = new Map(listFields(tree).map((field) => [field.key, field]));

describe("keys", () => {
  it("are taken apart and put together again, whatever is in them", () => {
    fc.assert(fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 5 }), (path) => void expect(splitSettingPath(joinSettingPath(path))).toEqual(path)));
  });

  it("with quotes are read as the server writes them", () => {
    expect(splitSettingPath('providers."my.own".api_key')).toEqual(["providers", "my.own", "api_key"]);
    expect(splitSettingPath('redact.patterns."a\\d"')).toEqual(["redact", "patterns", "a\\d"]);
    expect(formatLabel("turn_seconds")).toBe("Turn seconds");
  });
});

describe("the form", () => {
  it("has a field for each value, with its kind, its default and what it is for", () => {
    expect(fields.get("mode")?.kind).toEqual({ is: "choice", of: ["ask", "plan"] });
    expect(fields.get("limits.rounds")).toMatchObject({ label: "Rounds", about: "Model calls in one turn.", fallback: 250, kind: { is: "number", whole: true, least: 1 } });
    expect(fields.get("limits.turn_seconds")).toMatchObject({ about: "How long.", fallback: null, kind: { is: "number", whole: false, above: 0 } });
    expect(fields.get("hosts")).toMatchObject({ fallback: ["a"], kind: { is: "list", of: { is: "text" } } });
  });

  it("has lists of tables as rows, and says which columns are needed", () => {
    const rules = fields.get("rules")?.kind;
    expect(rules?.is === "rows" && rules.columns.map((column) => [column.key, column.needed])).toEqual([["decision", true], ["tool", false]]);
  });

  it("shows the names that are in use below what the user names, values and tables alike", () => {
    const providers = tree.groups.find((group) => group.key === "providers");
    expect(providers?.named).toBe(true);
    expect(providers?.groups.map((group) => [group.label, group.chosen])).toEqual([["my.own", true], ["openai", true]]);
    expect(fields.get('providers."my.own".headers.X-A')).toMatchObject({ label: "X-A", about: "A header." });
    expect(fields.get("providers.openai.websocket")?.kind).toEqual({ is: "flag" });
  });

  it("is sifted by all words of a search, in the key, the name and the explanation", () => {
    expect(listFields(filterGroup(tree, ["calls", "rounds"]) ?? tree).map((field) => field.key)).toEqual(["limits.rounds"]);
    expect(filterGroup(tree, ["no such thing"])).toBeNull();
  });
});
