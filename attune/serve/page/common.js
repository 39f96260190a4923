// What the parts of the page share: requests, the API key, lists to choose from, colours.
// Text of models and users goes into the page as text, never as HTML.

export const byId = id => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function show(id, shown = true) {
  byId(id).hidden = !shown;
}

/** Shows what went wrong; without an error it hides the last one. */
export function problem(error) {
  byId("problem").textContent = error ? error.message : "";
  show("problem", Boolean(error));
}

// The key is kept for this tab alone; where storage is forbidden, until the page is left.
const kKeyName = "attune-api-key";
let key = "";
try { key = sessionStorage.getItem(kKeyName) || ""; } catch { /* forbidden */ }

export function useKey(text) {
  key = text;
  try { sessionStorage.setItem(kKeyName, text); } catch { /* forbidden */ }
}

function messageOf(body, status) {
  const error = body && body.error;
  return (error && (error.message || error)) || "The server answered " + status + ".";
}

/** GET without a body, else POST of JSON. Returns the response. Throws an Error with the server's message. */
export async function ask(path, body, signal) {
  const headers = {};
  if (key) headers.Authorization = "Bearer " + key;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer.");
  }
  if (response.ok) return response;
  if (response.status === 401) show("key-form");
  throw new Error(messageOf(await response.json().catch(() => null), response.status));
}

/** The data of server-sent events, one after the other, up to [DONE]. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(messageOf(event, 500));
      yield event;
    }
  }
}

/** A function that calls work(signal) and aborts its last call, so that only the newest answer counts. */
export function latest(work) {
  let controller = null;
  return async () => {
    if (controller) controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    try {
      await work(signal);
      if (!signal.aborted) problem(null);
    } catch (error) {
      if (!signal.aborted) problem(error);
    }
  };
}

/** A function that calls `work` when it was not called again for a moment. */
export function soon(work) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, 250); };
}

/** Fills a <select> with [value, text] and keeps what was chosen where it is still there. */
export function fill(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));
  if (choices.some(([value]) => value === before)) select.value = before;
}

/** The models of a kind in a <select>. Returns whether there are any; without them the fields of the panel are off. */
export function fillModels(panel, select, models, missing) {
  fill(select, models.length ? models.map(m => [m.model_id, m.model_id]) : [["", missing]]);
  for (const field of byId(panel).querySelectorAll("select, textarea, input, button[type=submit]"))
    field.disabled = !models.length;
  return models.length > 0;
}

/**
 * One of the children of `toolbar` is chosen: by a click, or by the arrow keys, Home and End from one that has the
 * focus. Only the chosen one is a stop of the Tab key. Returns choose(index).
 */
export function chooser(toolbar, onChoose) {
  const choose = (index, focus = false) => {
    const items = [...toolbar.children];
    if (!items.length) return;
    const chosen = Math.max(0, Math.min(index, items.length - 1));
    items.forEach((item, i) => {
      item.setAttribute("aria-pressed", i === chosen);
      item.tabIndex = i === chosen ? 0 : -1;
    });
    if (focus) items[chosen].focus();
    onChoose(chosen);
  };
  const indexOf = node => [...toolbar.children].findIndex(item => item.contains(node));
  toolbar.addEventListener("click", event => {
    const index = indexOf(event.target);
    if (index >= 0) choose(index, true);
  });
  toolbar.addEventListener("keydown", event => {
    const index = indexOf(event.target), last = toolbar.children.length - 1;
    const to = { ArrowRight: index + 1, ArrowDown: index + 1, ArrowLeft: index - 1, ArrowUp: index - 1, Home: 0,
                 End: last, Enter: index, " ": index }[event.key];
    if (index < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(to, true);
  });
  return choose;
}

// One hue from the card's colour to the accent. Black or white stands on each of them with a contrast of 4.5 and more.
const dark = matchMedia("(prefers-color-scheme: dark)");
const kRamps = { light: [[255, 255, 255], [29, 86, 176]], dark: [[23, 27, 34], [127, 178, 245]] };

function luminance(colour) {
  const [r, g, b] = colour.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Colours an element by a weight from 0 to 1; again when the colour scheme changes. */
export function paint(target, weight) {
  target.dataset.weight = weight;
  const [from, to] = dark.matches ? kRamps.dark : kRamps.light;
  const colour = from.map((c, i) => Math.round(c + (to[i] - c) * Math.min(1, Math.max(0, weight))));
  target.style.background = "rgb(" + colour.join(" ") + ")";
  target.style.color = luminance(colour) > 0.179 ? "#000" : "#fff";
}
dark.addEventListener("change", () => {
  for (const target of document.querySelectorAll("[data-weight]")) paint(target, Number(target.dataset.weight));
});

export const percent = value => (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %";

/** A row of a table of bars: a name, a number and a bar as long as `share`. */
export function barRow(name, number, share, chosen = false) {
  const bar = element("div", { class: "bar" });
  bar.style.width = percent(Math.min(1, Math.max(0, share))).replace(" ", "");
  return element("tr", chosen ? { class: "chosen" } : {}, element("th", { scope: "row" }, name),
                 element("td", {}, number), element("td", { "aria-hidden": "true" }, bar));
}
