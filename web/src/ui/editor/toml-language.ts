/** TOML for the editor: enough of it to colour it. */

import { LanguageSupport, StreamLanguage, type StringStream } from "@codemirror/language";

interface TomlState {
  /** The sign that ends a text of several lines. */
  within: string;
}

function readToken(stream: StringStream, state: TomlState): string | null {
  if (state.within) {
    const end = stream.string.indexOf(state.within, stream.pos);
    if (end < 0) stream.skipToEnd();
    else {
      stream.pos = end + 3;
      state.within = "";
    }
    return "string";
  }
  if (stream.eatSpace()) return null;
  if (stream.match(/^#.*/)) return "comment";
  if (stream.match(/^("""|''')/)) {
    state.within = stream.current();
    return "string";
  }
  if (stream.sol() && stream.match(/^\[\[?[^\]]*\]?\]?/)) return "heading";
  if (stream.match(/^(?:[\w.-]+|"[^"]*"|'[^']*')(?=\s*(?:\.|=))/)) return "propertyName";
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'[^']*'?/)) return "string";
  if (stream.match(/^(?:true|false)\b/)) return "bool";
  if (stream.match(/^[-+]?(?:\d[\w.:+-]*|inf|nan)/)) return "number";
  stream.next();
  return null;
}

const LANGUAGE = StreamLanguage.define<TomlState>({ startState: () => ({ within: "" }), token: readToken, languageData: { commentTokens: { line: "#" } } });

export function tomlLanguage(): LanguageSupport {
  return new LanguageSupport(LANGUAGE);
}
