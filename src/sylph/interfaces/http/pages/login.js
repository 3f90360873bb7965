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

const greet = (login) => show(`You are logged in as ${login.name}: ${login.scopes.join(", ")}.`, { inside: true });
const fail = (error) => show(error.message, { wrong: true });

async function begin() {
  const code = location.hash.slice(1);
  if (code) {
    // The code is used up at once; it stays in no history.
    history.replaceState(null, "", location.pathname);
    return ask("POST", { code }).then(greet, fail);
  }
  return ask("GET").then(greet, () => show("Log in with a key."));
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = at("key");
  const key = field.value.trim();
  field.value = "";
  ask("POST", { key }).then(greet, fail);
});
at("leave").addEventListener("click", () => ask("DELETE").then(() => show("You are logged out."), fail));
addEventListener("hashchange", begin);
begin();
