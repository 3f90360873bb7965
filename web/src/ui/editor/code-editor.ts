/** The text editor. It is large, and loaded only where somebody opens a text. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  type LanguageSupport,
  syntaxHighlighting,
} from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  crosshairCursor,
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { EditorLanguage } from "./file-kinds";
import { hasMixedLineEnds } from "./line-endings";
import { spliceBetween } from "./text-splice";

export interface EditorOptions {
  text: string;
  label: string;
  language: EditorLanguage;
  readOnly: boolean;
  wrap: boolean;
  changed(dirty: boolean): void;
}

/** Where the text is edited. */
export interface TextBuffer {
  text(): string;
  /** Puts another text in place; one can go back to the one before. */
  replace(text: string): void;
  /** Says which text is the saved one. */
  markSaved(text: string): void;
}

export interface CodeEditor extends TextBuffer {
  setWrapping(on: boolean): void;
  revealLine(line: number): void;
  focus(): void;
  destroy(): void;
}

const LANGUAGES: Record<Exclude<EditorLanguage, "">, () => Promise<LanguageSupport>> = {
  css: async () => (await import("@codemirror/lang-css")).css(),
  html: async () => (await import("@codemirror/lang-html")).html(),
  javascript: async () => (await import("@codemirror/lang-javascript")).javascript({ jsx: true }),
  json: async () => (await import("@codemirror/lang-json")).json(),
  markdown: async () => (await import("@codemirror/lang-markdown")).markdown(),
  python: async () => (await import("@codemirror/lang-python")).python(),
  toml: async () => (await import("./toml-language")).tomlLanguage(),
  typescript: async () => (await import("@codemirror/lang-javascript")).javascript({ jsx: true, typescript: true }),
  yaml: async () => (await import("@codemirror/lang-yaml")).yaml(),
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null, tags.heading, tags.link], color: "light-dark(#8b2fa8, #d8a0ec)" },
  { tag: [tags.string, tags.attributeName, tags.inserted], color: "light-dark(#1a7038, #8fd6a5)" },
  { tag: [tags.number, tags.typeName, tags.className, tags.atom], color: "light-dark(#9a4b00, #f0b27a)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.tagName, tags.propertyName], color: "light-dark(#1f5fbf, #8fb9ff)" },
  { tag: [tags.comment, tags.meta, tags.deleted], color: "var(--soft)" },
  { tag: tags.heading, fontWeight: "bold" },
  { tag: tags.strong, fontWeight: "bold" },
  { tag: tags.emphasis, fontStyle: "italic" },
]);

const EDITOR_THEME = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--raised)", fontSize: "13.5px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#0000000a, #ffffff0d)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "light-dark(#cfe0fa, #2a3f63)",
  },
  ".cm-selectionMatch": { backgroundColor: "light-dark(#e3ecd0, #2b3a1f)" },
  ".cm-searchMatch": { backgroundColor: "light-dark(#ffe69a, #4a3a0c)", color: "var(--ink)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--accent)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", color: "var(--soft)", border: "1px solid var(--line)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panel input, .cm-panel button": {
    font: "inherit",
    color: "var(--ink)",
    background: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "var(--round)",
  },
  ".cm-panel.cm-search": { fontFamily: "system-ui, sans-serif", fontSize: "13px", padding: "0.4rem 2rem 0.4rem 0.5rem" },
});

/**
 * Puts an editor into an element. Its styles are made while it runs, which the page's policy forbids in the page itself:
 * in a tree of its own they are sheets that the policy has nothing to say about.
 */
export function createEditor(host: HTMLElement, wishes: EditorOptions): CodeEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const wrapping = new Compartment();
  const speaking = new Compartment();
  const state = EditorState.create({
    doc: "",
    extensions: [...buildExtensions(wishes), wrapping.of(wrapExtension(wishes.wrap)), speaking.of([])],
  });
  let saved = state.toText(wishes.text);
  const view = new EditorView({
    root,
    parent: root,
    // The text itself is split as the state has it: with each kind of line end, or with one.
    state: state.update({ changes: { from: 0, insert: saved } }).state,
    dispatchTransactions(transactions, shown) {
      shown.update(transactions);
      if (transactions.some((one) => one.docChanged)) reportChange();
    },
  });
  const reportChange = (): void => wishes.changed(!saved.eq(view.state.doc));
  if (wishes.language) {
    const applyLanguage = (language: LanguageSupport): void => view.dispatch({ effects: speaking.reconfigure(language) });
    // Where the language cannot be loaded the text goes without its colours.
    LANGUAGES[wishes.language]().then(applyLanguage, () => undefined);
  }
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: spliceBetween(view.state.doc.toString(), text) }),
    markSaved: (text) => {
      saved = view.state.toText(text);
      reportChange();
    },
    setWrapping: (on) => view.dispatch({ effects: wrapping.reconfigure(wrapExtension(on)) }),
    revealLine: (line) => {
      const { from } = view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines)));
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/**
 * Where chosen text is typed over, a browser would give the new text the colours of the old one, as styles that the page's
 * policy refuses. Here the editor puts it in itself.
 */
const TYPE_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { selection, readOnly } = view.state;
    if (event.inputType !== "insertText" || !event.data || event.isComposing || selection.main.empty || readOnly) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

function wrapExtension(on: boolean): Extension {
  return on ? EditorView.lineWrapping : [];
}

function buildExtensions(wishes: EditorOptions): Extension[] {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    history(),
    foldGutter(),
    drawSelection(),
    dropCursor(),
    EditorState.allowMultipleSelections.of(true),
    indentOnInput(),
    bracketMatching(),
    rectangularSelection(),
    crosshairCursor(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    syntaxHighlighting(COLOURS),
    keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, indentWithTab]),
    EDITOR_THEME,
    TYPE_OVER,
    EditorState.readOnly.of(wishes.readOnly),
    EditorView.contentAttributes.of({ "aria-label": wishes.label, "aria-readonly": String(wishes.readOnly), tabindex: "0" }),
    hasMixedLineEnds(wishes.text) ? EditorState.lineSeparator.of("\n") : [],
  ];
}
