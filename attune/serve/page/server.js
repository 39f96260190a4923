// Load, speed and memory, from /metrics (Prometheus' text format).
import { ask, byId, element } from "/page/common.js";

const kSeconds = 2, kSamples = 60;
const speeds = [];  // tokens a second, newest last
let before = null;

// name -> [{labels, value}]
function parse(text) {
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[name] = value.replace(/\\(.)/g, "$1");
    if (!metrics.has(found[1])) metrics.set(found[1], []);
    metrics.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return metrics;
}

/** The sum over all series of a name, or over those of a model. */
function sum(metrics, name, model) {
  return (metrics.get(name) || []).filter(s => model === undefined || s.labels.model === model)
    .reduce((total, s) => total + s.value, 0);
}

const bytes = count => count >= 1e9 ? (count / 1e9).toFixed(2) + " GB" : (count / 1e6).toFixed(1) + " MB";
const mean = (metrics, name, model, unit, scale) => {
  const count = sum(metrics, name + "_count", model);
  return count ? (scale * sum(metrics, name + "_sum", model) / count).toFixed(1) + " " + unit : "–";
};

function showNow(metrics, tokens, requests) {
  const facts = [
    ["Waiting", sum(metrics, "attune_queue_requests")],
    ["At work", sum(metrics, "attune_running_requests")],
    ["Open requests", sum(metrics, "attune_open_requests")],
    ["Tokens a second", tokens.toFixed(0)],
    ["Requests a second", requests.toFixed(1)],
    ["Caches", bytes(sum(metrics, "attune_cache_bytes"))],
    ["Memory of the process", bytes(sum(metrics, "process_resident_memory_bytes"))]];
  byId("now").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
  byId("summary").textContent = facts[0][1] + " waiting · " + facts[1][1] + " at work · " + facts[3][1] +
    " tokens/s · " + facts[6][1];
}

function showCurve() {
  const most = Math.max(1, ...speeds);
  const points = speeds.map((speed, i) =>
    (300 * (kSamples - speeds.length + i) / (kSamples - 1)).toFixed(1) + " " + (58 - 56 * speed / most).toFixed(1));
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M" + points.join("L"));
  byId("curve").replaceChildren(path);
  byId("curve").setAttribute("aria-label",
    "Tokens a second: now " + speeds[speeds.length - 1].toFixed(0) + ", at most " + most.toFixed(0));
}

function showModels(metrics) {
  const columns = [
    ["Model", m => m],
    ["waiting", m => sum(metrics, "attune_queue_requests", m)],
    ["at work", m => sum(metrics, "attune_running_requests", m)],
    ["requests", m => sum(metrics, "attune_request_seconds_count", m)],
    ["time", m => mean(metrics, "attune_request_seconds", m, "ms", 1e3)],
    ["first token", m => mean(metrics, "attune_time_to_first_token_seconds", m, "ms", 1e3)],
    ["each token", m => mean(metrics, "attune_time_per_token_seconds", m, "ms", 1e3)],
    ["tokens in", m => sum(metrics, "attune_tokens_in_total", m)],
    ["tokens out", m => sum(metrics, "attune_tokens_out_total", m)],
    ["cache", m => bytes(sum(metrics, "attune_cache_bytes", m))]];
  const names = (metrics.get("attune_queue_requests") || []).map(s => s.labels.model);
  byId("models").replaceChildren(
    element("caption", { class: "unseen" }, "Numbers of each model since the server began; times are means"),
    element("thead", {}, element("tr", {}, ...columns.map(([name]) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...names.map(model => element("tr", {}, element("th", { scope: "row" }, model),
      ...columns.slice(1).map(([, value]) => element("td", {}, String(value(model))))))));
}

async function look(onReady) {
  if (document.hidden) return;
  try {
    const metrics = parse(await (await ask("/metrics")).text()), now = performance.now();
    const tokens = sum(metrics, "attune_tokens_in_total") + sum(metrics, "attune_tokens_out_total");
    const requests = sum(metrics, "attune_request_seconds_count");
    const seconds = before ? (now - before.now) / 1000 : 1;
    const rate = (value, last) => before ? Math.max(0, value - last) / seconds : 0;
    speeds.push(rate(tokens, before?.tokens));
    if (speeds.length > kSamples) speeds.shift();
    showNow(metrics, speeds[speeds.length - 1], rate(requests, before?.requests));
    showCurve();
    showModels(metrics);
    before = { now, tokens, requests };
    if (sum(metrics, "attune_ready")) onReady(); else byId("summary").textContent = "The models are being loaded …";
  } catch (error) {
    byId("summary").textContent = error.message;
  }
}

/** Looks every two seconds while the page is seen; calls `onReady` whenever the models are there. */
export function startWatching(onReady) {
  look(onReady);
  setInterval(() => look(onReady), 1000 * kSeconds);
}
