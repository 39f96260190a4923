#pragma once

#include "attune/base/json.h"
// The page around the heat maps; {{title}}, {{texts}} and {{data}} are filled in by heat_map.cpp.

namespace attune::cli {

inline constexpr const char* heat_map_template = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{{title}}</title>
<style>
:root {
  --page: #f6f7f9; --card: #ffffff; --line: #e1e4ea; --text: #171a21; --soft: #626a79; --accent: #1d56b0; --on: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1217; --card: #171b22; --line: #2a303b; --text: #e8ebf1; --soft: #98a1b1; --accent: #7fb2f5; --on: #0f1217;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main { max-width: 1560px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 26px; }
h1 { font-size: 20px; font-weight: 650; margin: 0 0 12px; letter-spacing: -.01em; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 16px; margin: 0 0 16px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
nav { position: sticky; top: 0; z-index: 2; background: var(--page); border-bottom: 1px solid var(--line); }
nav > div { max-width: 1560px; margin: 0 auto; padding: 10px 24px; display: flex; flex-wrap: wrap;
            gap: 10px 26px; align-items: center; }
fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px; align-items: center; }
legend { float: left; padding: 0 8px 0 0; color: var(--soft); }
button { font: inherit; font-size: 14px; line-height: 1.3; color: var(--text); background: transparent;
         border: 1px solid var(--line); border-radius: 7px; padding: 5px 11px; cursor: pointer; }
button:hover { border-color: var(--accent); }
button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: var(--on); }
button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
#scale { margin-left: auto; display: flex; align-items: center; gap: 8px; color: var(--soft); font-size: 13px; }
#scale canvas { width: 120px; height: 10px; border-radius: 3px; }
#about { color: var(--soft); margin: 14px 0; font-size: 14px; }
#heads { display: flex; flex-wrap: wrap; gap: 16px; padding-bottom: 48px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px 14px;
         max-width: 100%; overflow-x: auto; }
figcaption { font-weight: 600; font-size: 14px; margin-bottom: 4px; }
figcaption small { font-weight: 400; color: var(--soft); margin-left: 8px; }
figure canvas { display: block; cursor: crosshair; }
#tip { position: fixed; z-index: 3; pointer-events: none; visibility: hidden; background: var(--text); color: var(--page);
       border-radius: 7px; padding: 5px 10px; font-size: 13px; max-width: 320px; overflow-wrap: anywhere; }
#tip b { font-variant-numeric: tabular-nums; margin-right: 8px; }
</style>
</head>
<body>
<header>
<h1>{{title}}</h1>
<dl>{{texts}}</dl>
</header>
<nav><div>
<fieldset id="kinds"><legend>Attention</legend></fieldset>
<fieldset id="layers"><legend>Layer</legend></fieldset>
<div id="scale"><span>0</span><canvas width="240" height="1"></canvas><span>1</span></div>
</div></nav>
<main>
<p id="about"></p>
<div id="heads"></div>
<noscript>The heat maps are drawn by a script, which this browser does not run.</noscript>
</main>
<div id="tip" role="status"></div>
<script type="application/json" id="data">{{data}}</script>
<script>
"use strict";
const maps = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { kind: 0, layer: 0 };
const longest = 110;  // pixels of a label

// One hue from the card's colour to the strongest contrast; weights are placed on it linearly.
const stops = {
  light: [[243, 246, 251], [189, 212, 243], [98, 150, 222], [29, 86, 176], [10, 35, 88]],
  dark: [[27, 33, 43], [28, 62, 112], [48, 116, 203], [134, 187, 247], [240, 247, 255]] };
function colour(weight) {
  const ramp = dark.matches ? stops.dark : stops.light;
  const at = Math.min(weight, 1) * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
  return "rgb(" + ramp[low].map((c, i) => Math.round(c + (ramp[low + 1][i] - c) * (at - low))).join(" ") + ")";
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const digit = {};
for (let i = 0; i < 64; ++i) digit[digits[i]] = i;
function unpack(text) {
  const weights = new Float32Array(text.length / 2);
  for (let i = 0; i < weights.length; ++i) weights[i] = (64 * digit[text[2 * i]] + digit[text[2 * i + 1]]) / 4095;
  return weights;
}

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const font = size => size + "px " + getComputedStyle(document.body).fontFamily;
function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && context.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}

// As many maps side by side as stay legible, in cells that fill the width.
function layout(map) {
  const context = document.createElement("canvas").getContext("2d"), columns = map.keys.length;
  const width = byId("heads").clientWidth, cards = map.layers[0].length + 1, least = columns <= 24 ? 20 : 13;
  context.font = font(12);
  const widest = tokens => Math.min(longest, Math.max(...tokens.map(t => context.measureText(t).width), 8)) + 10;
  const left = widest(map.queries) + 14, top = widest(map.keys) + 14;
  const fitting = count => Math.floor(((width - 16 * (count - 1)) / count - 31 - left) / columns);
  let count = cards;
  while (count > 1 && fitting(count) < least) --count;
  const cell = Math.max(13, Math.min(30, fitting(count)));
  return { cell, size: cell >= 15 ? 12 : 10, left, top, width: left + cell * columns + 1,
           height: top + cell * map.queries.length + 1 };
}

// The mark of a word's beginning stands back behind its letters.
function drawLabel(context, text, x, y) {
  const mark = text.startsWith("\u2581") && text.length > 1 ? "\u2581" : "", rest = text.slice(mark.length);
  const markWidth = context.measureText(mark).width, restWidth = context.measureText(rest).width;
  const start = context.textAlign === "right" ? x - markWidth - restWidth : x;
  context.textAlign = "left";
  context.fillText(rest, start + markWidth, y);
  context.globalAlpha = .35; context.fillText(mark, start, y); context.globalAlpha = 1;
}

function draw(canvas, map, weights, where, at) {
  const ratio = Math.max(1, devicePixelRatio || 1), context = canvas.getContext("2d");
  const { cell, size, left, top } = where, rows = map.queries.length, columns = map.keys.length;
  canvas.width = Math.ceil(where.width * ratio); canvas.height = Math.ceil(where.height * ratio);
  canvas.style.width = where.width + "px"; canvas.style.height = where.height + "px";
  context.scale(ratio, ratio);
  const gap = cell >= 15 ? 1 : .5;
  for (let i = 0; i < rows; ++i)
    for (let j = 0; j < columns; ++j) {
      if (map.causal && j > i) break;  // nothing there to be attended to
      context.fillStyle = colour(weights[i * columns + j]);
      context.fillRect(left + j * cell, top + i * cell, cell - gap, cell - gap);
    }
  const label = (text, strong, align, x, y) => {
    context.fillStyle = strong ? css.text : css.soft;
    context.font = (strong ? "600 " : "") + font(size);
    context.textAlign = align;
    drawLabel(context, shorten(context, text, longest), x, y);
  };
  const upright = (x, y, drawing) => {
    context.save(); context.translate(x, y); context.rotate(-Math.PI / 2); drawing(); context.restore();
  };
  context.textBaseline = "middle";
  map.queries.forEach((t, i) => label(t, at && at.i === i, "right", left - 6, top + (i + .5) * cell));
  map.keys.forEach((t, j) =>
    upright(left + (j + .5) * cell, top - 6, () => label(t, at && at.j === j, "left", 0, 0)));
  context.fillStyle = css.soft; context.font = "italic " + font(11);
  context.textAlign = "left"; context.fillText(map.keyName + " →", left, 7);
  context.textAlign = "right"; upright(7, top, () => context.fillText("← " + map.queryName, 0, 0));
  if (at) {
    context.strokeStyle = css.text; context.lineWidth = 1.5;
    context.strokeRect(left + at.j * cell - 1, top + at.i * cell - 1, cell - gap + 2, cell - gap + 2);
  }
}

function hover(canvas, map, weights, where) {
  const tip = byId("tip");
  const leave = () => { tip.style.visibility = "hidden"; draw(canvas, map, weights, where, null); };
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("pointermove", event => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - where.left) / where.cell);
    const i = Math.floor((event.clientY - box.top - where.top) / where.cell);
    if (i < 0 || j < 0 || i >= map.queries.length || j >= map.keys.length) return leave();
    draw(canvas, map, weights, where, { i, j });
    const value = document.createElement("b");
    value.textContent = map.causal && j > i ? "masked" : weights[i * map.keys.length + j].toFixed(3);
    tip.replaceChildren(value, map.queries[i] + " → " + map.keys[j]);
    tip.style.visibility = "visible";
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, room)) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  });
}

function add(name, note, map, weights, where) {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  const small = document.createElement("small"), canvas = document.createElement("canvas");
  caption.textContent = name; small.textContent = note; caption.append(small);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", name + ": weights of " + map.queryName + " tokens over " + map.keyName + " tokens");
  figure.append(caption, canvas); byId("heads").append(figure);
  draw(canvas, map, weights, where, null); hover(canvas, map, weights, where);
}

// Mean entropy of the rows, in bits: how many keys a head spreads its weight over.
function entropy(map, weights) {
  let sum = 0;
  for (const w of weights) if (w > 0) sum -= w * Math.log2(w);
  return sum / map.queries.length;
}

function show() {
  const map = maps[state.kind];
  state.layer = Math.min(state.layer, map.layers.length - 1);
  css.text = css("--text"); css.soft = css("--soft");
  const heads = map.layers[state.layer].map(unpack), where = layout(map);
  byId("tip").style.visibility = "hidden";
  byId("heads").replaceChildren();
  byId("about").textContent = "Each row is a " + map.queryName + " token; its weights over the " + map.keyName +
    " tokens sum to 1. " + map.note + " The number beside a head is the mean entropy of its rows.";
  if (heads.length > 1) {
    const mean = heads[0].map((_, i) => heads.reduce((sum, h) => sum + h[i], 0) / heads.length);
    add("Mean of all heads", entropy(map, mean).toFixed(2) + " bit", map, mean, where);
  }
  heads.forEach((h, i) => add("Head " + (i + 1), entropy(map, h).toFixed(2) + " bit", map, h, where));
  const press = (id, chosen) => document.querySelectorAll("#" + id + " button").forEach(
    (b, i) => b.setAttribute("aria-pressed", i === chosen));
  press("kinds", state.kind); press("layers", state.layer);
  const bar = document.querySelector("#scale canvas"), context = bar.getContext("2d");
  for (let x = 0; x < bar.width; ++x) { context.fillStyle = colour(x / (bar.width - 1)); context.fillRect(x, 0, 1, 1); }
}

function choose(key, value) {
  state[key] = value;
  try { history.replaceState(null, "", "#" + (state.kind + 1) + "." + (state.layer + 1)); } catch (error) { /* a file */ }
  show();
}
function addButton(id, text, key, value) {
  const button = document.createElement("button");
  button.type = "button"; button.textContent = text; button.addEventListener("click", () => choose(key, value));
  byId(id).append(button);
}
maps.forEach((map, i) => addButton("kinds", map.name, "kind", i));
maps[0].layers.forEach((_, i) => addButton("layers", i + 1, "layer", i));
addEventListener("keydown", event => {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step && !event.altKey && !event.ctrlKey && !event.metaKey)
    choose("layer", Math.max(0, Math.min(maps[state.kind].layers.length - 1, state.layer + step)));
});
const place = /^#(\d+)\.(\d+)$/.exec(location.hash);  // kind and layer, so that a view can be linked to
if (place) { state.kind = Math.max(1, Math.min(place[1], maps.length)) - 1; state.layer = Math.max(1, place[2]) - 1; }
dark.addEventListener("change", show);
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(show, 100); });
show();
</script>
</body>
</html>
)html";

}  // namespace attune::cli
