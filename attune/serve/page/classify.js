// What each label gets for a text.
import { ask, barRow, byId, fillModels, latest, percent, show, soon } from "/page/common.js";

const classify = latest(async signal => {
  const text = byId("to-classify").value;
  if (!text.trim()) return showLabels([]);
  showLabels(await (await ask("/predict", { model: byId("classify-model").value, inputs: text }, signal)).json());
});

// Likeliest first. Scores of a regression are no probabilities.
function showLabels(labels) {
  const shares = labels.every(l => l.score >= 0 && l.score <= 1);
  const number = score => shares ? percent(score) : score.toFixed(3);
  byId("best-label").textContent = labels.length ? labels[0].label + ": " + number(labels[0].score) : "Nothing yet.";
  byId("label-rows").replaceChildren(
    ...labels.map((l, i) => barRow(l.label, number(l.score), shares ? l.score : 0, i === 0)));
  show("labels", labels.length > 0);
}

/** Returns whether there is a model of this kind. */
export function startClassification(all) {
  const models = all.filter(m => m.model_type.classifier);
  return fillModels("classify", byId("classify-model"), models, "no classifier is served");
}

byId("to-classify").addEventListener("input", soon(classify));
byId("classify-model").addEventListener("change", classify);
