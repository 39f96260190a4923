// A language model writes token by token; for each token there is what else it thought of.
import { ask, barRow, byId, chooser, element, events, fillModels, paint, percent, problem, show } from "/page/common.js";

let models = [];
let items = [];  // what stands in the text: {text, tokens: [{token, probability, likeliest}]}
let controller = null;

const probability = logarithm => Math.exp(logarithm);

// The tokens of an event of either interface.
function tokensOf(scores) {
  if (!scores) return [];
  if (scores.content)
    return scores.content.map(t => ({ token: t.token, probability: probability(t.logprob),
                                      likeliest: t.top_logprobs.map(o => [o.token, probability(o.logprob)]) }));
  return scores.tokens.map((token, i) => ({
    token, probability: probability(scores.token_logprobs[i]),
    likeliest: Object.entries(scores.top_logprobs[i]).map(([other, l]) => [other, probability(l)]).sort((a, b) => b[1] - a[1]) }));
}

// Space and line ends as one can see them.
const visible = token => token.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "(nothing)";

// Tokens may be parts of a character; they are then one item, with the text that they are together.
function add(text, tokens) {
  const apart = tokens.map(t => t.token).join("") === text;
  const added = apart ? tokens.map(t => ({ text: t.token, tokens: [t] })) : [{ text, tokens }];
  for (const item of added) {
    const shown = item.text.replace(/\n/g, "↵\n");
    const likelihood = item.tokens.reduce((product, t) => product * t.probability, 1);
    const span = element("span", { role: "button", tabindex: "-1",
      "aria-label": visible(item.text) + ", " + percent(likelihood) }, shown);
    paint(span, 0.85 * (1 - likelihood));
    items.push(item);
    byId("tokens").append(span);
  }
}

const chooseToken = chooser(byId("tokens"), index => {
  const tokens = items[index].tokens;
  byId("alternatives-name").textContent = "Instead of “" + tokens.map(t => visible(t.token)).join(" ") + "”";
  byId("alternatives-rows").replaceChildren(...tokens.flatMap(t => {
    const rows = t.likeliest.map(([token, p]) => barRow(visible(token), percent(p), p, token === t.token));
    if (!t.likeliest.some(([token]) => token === t.token)) rows.push(barRow(visible(t.token), percent(t.probability), t.probability, true));
    return rows;
  }));
  show("alternatives");
});

function request() {
  const number = id => byId(id).value === "" ? undefined : Number(byId(id).value);
  const body = { model: byId("write-model").value, max_tokens: number("max-tokens"), temperature: number("temperature"),
                 top_p: number("top-p"), seed: number("seed"), stream: true };
  if (byId("chat").checked && !byId("chat-choice").hidden)
    return ["/v1/chat/completions", { ...body, messages: [{ role: "user", content: byId("prompt").value }],
                                      logprobs: true, top_logprobs: 5 }];
  return ["/v1/completions", { ...body, prompt: byId("prompt").value, logprobs: 5 }];
}

function writing(on) {
  byId("go").disabled = on;
  byId("stop").disabled = !on;
}

async function write() {
  if (controller) return;
  controller = new AbortController();
  writing(true);
  problem(null);
  items = [];
  byId("tokens").replaceChildren();
  show("alternatives", false);
  show("written");
  byId("write-status").textContent = "Writing …";
  const begin = performance.now();
  let count = 0, end = "stopped";
  const speed = () => {
    const seconds = (performance.now() - begin) / 1000;
    return count + " tokens in " + seconds.toFixed(1) + " s, " + (count / seconds).toFixed(0) + " a second";
  };
  try {
    const [path, body] = request();
    for await (const event of events(await ask(path, body, controller.signal))) {
      if (controller.signal.aborted) break;  // several events may have come together
      const choice = event.choices[0], tokens = tokensOf(choice.logprobs);
      count += tokens.length;
      const text = choice.text ?? choice.delta.content;
      if (tokens.length || text) add(text, tokens);
      byId("speed").textContent = speed();
      if (choice.finish_reason) end = choice.finish_reason === "stop" ? "the model ended it" : "ended by its length";
    }
  } catch (error) {
    if (error.name !== "AbortError") problem(error);
  }
  byId("speed").textContent = "";
  byId("write-status").textContent = speed() + "; " + end + ".";
  const focused = document.activeElement === byId("stop");
  writing(false);
  if (focused) byId("go").focus();
  controller = null;
  const first = byId("tokens").firstElementChild;
  if (first && !byId("tokens").querySelector("[tabindex='0']")) first.tabIndex = 0;
}

function showChat() {
  show("chat-choice", Boolean(models.find(m => m.model_id === byId("write-model").value)?.chat));
}

/** Returns whether there is a model of this kind. */
export function startWriting(all) {
  models = all.filter(m => m.model_type === "language_model");
  const there = fillModels("write", byId("write-model"), models, "no language model is served");
  showChat();
  return there;
}

byId("write-model").addEventListener("change", showChat);
byId("write-form").addEventListener("submit", event => { event.preventDefault(); write(); });
byId("prompt").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) write();
});
byId("stop").addEventListener("click", () => controller && controller.abort());
