// Translation as one types, and where the model looks for each word.
import { ask, byId, chooser, element, fill, fillModels, latest, paint, percent, problem, show, soon } from "/page/common.js";

let models = [];
let sentences = [];          // of the newest answer
let chosen = [];             // for each sentence: which candidate
let attention = null;        // of the sentence, candidate and layer that are chosen
const answers = new Map();   // of /v1/attention, for the newest translation

function wanted() {
  const body = { model: byId("translate-model").value };
  if (!document.querySelector("#translate .languages").hidden) {
    body.source = byId("source-language").value;
    body.target = byId("target-language").value;
  }
  return body;
}

const candidateOf = index => sentences[index].n_best[chosen[index]];

function showText() {
  byId("translation").textContent = sentences.map((s, i) => candidateOf(i).text + s.space_after).join("");
}

const translate = latest(async signal => {
  const text = byId("source").value;
  if (!text.trim()) return showAnswer([], "");
  const body = { ...wanted(), text, alignments: true, n_best: Number(byId("n-best").value) || 1 };
  const begin = performance.now();
  const answer = await (await ask("/v1/translate", body, signal)).json();
  showAnswer(answer.translations[0].sentences, Math.round(performance.now() - begin) + " ms");
});

function showAnswer(found, note) {
  sentences = found.map(s => ({ ...s, space_after: s.space_after || "" }));
  chosen = sentences.map(() => 0);
  answers.clear();
  byId("translation-note").textContent = note;
  showText();
  const choices = sentences.map((s, i) => [String(i), (i + 1) + ": " + s.source]).filter((_, i) => candidateOf(i).tokens?.length);
  fill(byId("sentence"), choices);
  show("sentence-choice", choices.length > 1);
  show("look", choices.length > 0);
  if (choices.length) showSentence();
}

function showSentence() {
  const index = Number(byId("sentence").value);
  const rows = sentences[index].n_best.map((candidate, rank) => {
    const choice = element("input", { type: "radio", name: "candidate", value: rank });
    choice.checked = rank === chosen[index];
    choice.addEventListener("change", () => { chosen[index] = rank; showText(); look(); });
    return element("label", {}, choice, candidate.text, element("small", {}, "score " + candidate.score.toFixed(2)));
  });
  byId("candidates").replaceChildren(byId("candidates").querySelector("legend"), ...rows);
  look();
}

const look = latest(async signal => {
  const index = Number(byId("sentence").value), layer = Number(byId("layer").value);
  const body = { ...wanted(), text: sentences[index].source, translation: candidateOf(index).tokens };
  if (layer) body.layer = layer;
  const name = JSON.stringify(body);
  attention = null;  // what is shown belongs to another choice until the answer is there
  let found = answers.get(name);
  try {
    found = found || await (await ask("/v1/attention", body, signal)).json();
  } catch (error) {
    if (!signal.aborted) showNothing();
    throw error;
  }
  if (signal.aborted || byId("look").hidden) return;
  answers.set(name, found);
  attention = found;
  const numbers = count => Array.from({ length: count }, (_, i) => [String(i + 1), String(i + 1)]);
  fill(byId("layer"), numbers(attention.layers));
  byId("layer").value = String(attention.layer);
  fill(byId("head"), [["mean", "mean of all"], ...numbers(attention.heads.length)]);
  showAttention();
});

function showNothing() {
  for (const id of ["target-words", "source-words", "looked", "weights"]) byId(id).replaceChildren();
}

// The tokens of a side as they are, or put together as words; special tokens stay alone.
function groupsOf(side, words) {
  const groups = [];
  side.tokens.forEach((token, i) => {
    const word = side.word_of_token[i], last = groups[groups.length - 1];
    if (words && word >= 0 && last && last.word === word) {
      last.members.push(i);
    } else {
      groups.push({ label: words && word >= 0 ? side.words[word] : token, word, members: [i] });
    }
  });
  return groups;
}

// [target tokens][source tokens] of the chosen head.
function chosenWeights() {
  const head = byId("head").value, heads = attention.heads;
  if (head !== "mean") return heads[Number(head) - 1];
  return heads[0].map((row, i) => row.map((_, j) => heads.reduce((sum, h) => sum + h[i][j], 0) / heads.length));
}

let view = { sources: [], targets: [], rows: [] };

// A row of words is the mean of its tokens' rows, and a column the sum of its tokens', so that a row still sums to 1.
function showAttention() {
  const words = byId("unit").value === "words", weights = chosenWeights();
  const sources = groupsOf(attention.source, words), targets = groupsOf(attention.target, words);
  const rows = targets.map(target => sources.map(source => {
    let sum = 0;
    for (const t of target.members) for (const s of source.members) sum += weights[t][s];
    return sum / target.members.length;
  }));
  view = { sources, targets, rows };
  const pairs = (candidateOf(Number(byId("sentence").value)).alignment || []).map(pair => pair.join("-"));
  const aligned = (source, target) => words && pairs.includes(source.word + "-" + target.word);
  byId("target-words").replaceChildren(
    ...targets.map(t => element("button", { type: "button" }, t.label)));
  byId("source-words").replaceChildren(...sources.map(s => element("span", {}, s.label)));
  const head = element("tr", {}, element("td"), ...sources.map(s => element("th", { scope: "col" }, s.label)));
  const body = targets.map((target, t) => element("tr", {}, element("th", { scope: "row" }, target.label),
    ...sources.map((source, s) => {
      const cell = element("td", aligned(source, target) ? { class: "aligned" } : {}, rows[t][s].toFixed(2));
      paint(cell, rows[t][s]);
      return cell;
    })));
  byId("weights").replaceChildren(
    element("caption", { class: "unseen" }, "Weights: a row for each word of the translation, a column for each of the source"),
    element("thead", {}, head), element("tbody", {}, ...body));
  chooseTarget(0);
}

const chooseTarget = chooser(byId("target-words"), index => {
  const row = view.rows[index];
  [...byId("source-words").children].forEach((word, s) => paint(word, row[s]));
  const best = row.map((weight, s) => [weight, s]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  byId("looked").textContent = "For “" + view.targets[index].label + "” the model looks at " +
    best.map(([weight, s]) => "“" + view.sources[s].label + "” " + percent(weight)).join(", ") + ".";
});

function showLanguages() {
  const model = models.find(m => m.model_id === byId("translate-model").value);
  const sources = model?.source_languages || [], targets = model?.target_languages || [];
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  const choices = codes => codes.map(code => {
    try { return [code, names.of(code)]; } catch { return [code, code]; }
  });
  for (const label of document.querySelectorAll("#translate .languages"))
    label.hidden = sources.length * targets.length <= 1;
  fill(byId("source-language"), choices(sources));
  fill(byId("target-language"), choices(targets));
  if (sources.length > 1 && byId("source-language").value === byId("target-language").value)
    byId("target-language").value = targets.find(code => code !== byId("source-language").value) || "";
  byId("layer").replaceChildren();
}

/** Returns whether there is a model of this kind. */
export function startTranslation(all) {
  models = all.filter(m => m.model_type === "translation");
  const there = fillModels("translate", byId("translate-model"), models, "no translation model is served");
  showLanguages();
  return there;
}

byId("source").addEventListener("input", soon(translate));
byId("n-best").addEventListener("change", translate);
byId("translate-model").addEventListener("change", () => { problem(null); showLanguages(); translate(); });
for (const id of ["source-language", "target-language"]) byId(id).addEventListener("change", translate);
byId("sentence").addEventListener("change", showSentence);
byId("layer").addEventListener("change", look);
for (const id of ["head", "unit"]) byId(id).addEventListener("change", () => attention && showAttention());
