// The page: its tabs, its key, and which models there are.
import { ask, byId, chooser, problem, show, useKey } from "/page/common.js";
import { startClassification } from "/page/classify.js";
import { startWatching } from "/page/server.js";
import { startTranslation } from "/page/translate.js";
import { startWriting } from "/page/write.js";

const kPanels = ["translate", "write", "classify", "server"];

const tabs = document.querySelector("[role=tablist]");
const chooseTab = chooser(tabs, index => {
  kPanels.forEach((panel, i) => {
    show(panel, i === index);
    byId("tab-" + panel).setAttribute("aria-selected", i === index);
    byId("tab-" + panel).removeAttribute("aria-pressed");  // tabs are selected
  });
  problem(null);
});

let known = false;  // the models

async function begin() {
  try {
    const { models } = await (await ask("/info")).json();
    const there = [startTranslation(models), startWriting(models), startClassification(models)];
    chooseTab(Math.max(0, there.indexOf(true)));
    show("key-form", false);
    known = true;
  } catch (error) {
    problem(error);
  }
}

byId("key-form").addEventListener("submit", event => {
  event.preventDefault();
  useKey(byId("key").value);
  byId("key").value = "";
  begin();
});

startWatching(() => {
  if (!known && byId("key-form").hidden) begin();
});
