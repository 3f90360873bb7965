import "./theme.css";
import "./shell/theme.svelte";

import { mount } from "svelte";

import App from "./App.svelte";
import { watchErrors } from "./shell/errors";
import { app } from "./state/app.svelte";
import { keepAtHand } from "./worker";

watchErrors();
const target = document.getElementById("app");
if (target) mount(App, { target });
void app.begin();
// The first load is not to wait for it.
if (import.meta.env.PROD) addEventListener("load", () => void keepAtHand().catch(() => undefined));
