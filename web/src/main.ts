import "./ui/theme.css";
import "./state/theme.svelte";

import { mount } from "svelte";

import App from "./App.svelte";
import { watchErrors } from "./shell/errors/watch-errors";
import { app } from "./state/app-state.svelte";
import { registerServiceWorker } from "./shell/register-service-worker";

watchErrors();
const target = document.getElementById("app");
if (target) mount(App, { target });
void app.start();
// The first load is not to wait for it.
if (import.meta.env.PROD) addEventListener("load", () => void registerServiceWorker().catch(() => undefined));
