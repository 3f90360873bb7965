"use strict";

const at = (id) => document.getElementById(id);
const path = "/api/v1/login";

function show(text, { wrong = false, inside = false } = {}) {
  at("said").textContent = text;
  at("said").classList.toggle("wrong", wrong);
  at("enter").hidden = inside;
  at("inside").hidden = !inside;
}

async function ask(method, body) {
  const answer = await fetch(path, {
    method,
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const told = answer.status === 204 ? null : await answer.json();
  if (answer.ok) return told;
  const wait = answer.headers.get("Retry-After");
  throw new Error(told.detail + (wait ? ` Try again in ${wait} s.` : ""));
}

// Only a path of this server: "//other" and "/\\other" lead elsewhere.
function back() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "";
  const goal = /^\/(?![/\\])/.test(wanted) ? new URL(wanted, location.origin) : null;
  return goal && goal.origin === location.origin && goal.pathname !== location.pathname ? goal : null;
}

const may = (login) => (login.scopes.includes("admin") ? "everything" : login.scopes.join(", "));
function greet(login, before = "") {
  show(`${before}You are logged in. This login is called “${login.name}” and may ${may(login)}.`, { inside: true });
  at("on").href = back()?.href ?? "/";
}
// In place of this page: who goes back comes to where they were before it.
function enter(login) {
  const goal = back() ?? "/";
  greet(login);
  location.replace(goal);
}
const fail = (error) => show(error.message, { wrong: true });

async function begin() {
  const code = location.hash.slice(1);
  if (code) {
    // The code is used up at once; it stays in no history.
    history.replaceState(null, "", location.pathname + location.search);
    return ask("POST", { code }).then(enter, (error) =>
      ask("GET").then((login) => greet(login, "The link was used or is too old, but that does not matter: "), () => fail(error)),
    );
  }
  return ask("GET").then((login) => (back() ? enter(login) : greet(login)), () => show("Log in with a key."));
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = at("key");
  const key = field.value.trim();
  field.value = "";
  ask("POST", { key }).then(enter, fail);
});
at("leave").addEventListener("click", () => ask("DELETE").then(() => show("You are logged out."), fail));
addEventListener("hashchange", begin);
begin();
