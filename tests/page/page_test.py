#!/usr/bin/env python3
"""Uses the page of `attune serve` in a real browser (Debian's chromium, driven by Playwright).

    page_test.py ATTUNE TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL [--pictures FOLDER]

`--pictures` writes the pictures of docs/serving.md in place of testing. scripts/test-page makes the models and runs this.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from playwright.sync_api import expect, sync_playwright

SENTENCE = "The old dog sleeps in the garden."
KEY = "a key of the test 0123456789"


@contextlib.contextmanager
def server(options, *more):
    """The address of `attune serve` with the three models."""
    command = [options.attune, "serve", f"en-de={options.translation}", f"topics={options.classifier}",
               f"writer={options.language_model}", "--port", "0", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:  # says where it listens once the models are there
            if found := re.search(r"serving on (http://[0-9.:]+)", line):
                break
        else:
            raise RuntimeError("the server has ended")
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)  # its log
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        drain.wait(10)


def post(address, path, body):
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


class Browser:
    """Pages that keep what the browser complains about."""

    def __init__(self, chromium, address):
        self.chromium, self.address, self.complaints = chromium, address, []

    @contextlib.contextmanager
    def page(self, address=None, **options):
        context = self.chromium.new_context(**options)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        page.on("request", lambda r: self.complaints.append(r.url) if not r.url.startswith("http://127.0.0.1") else None)
        page.goto(address or self.address)
        yield page
        context.close()


def shown_rows(page):
    """The numbers of the table of weights as they stand there."""
    rows = page.locator("#weights tbody tr")
    return [[float(cell) for cell in rows.nth(i).locator("td").all_inner_texts()] for i in range(rows.count())]


def check_rows_sum_to_one(page):
    rows = shown_rows(page)
    assert rows
    for row in rows:  # each number is rounded to two digits
        assert abs(sum(row) - 1) <= 0.005 * len(row) + 1e-9, row
    return rows


def translate(page, text=SENTENCE):
    page.locator("#source").fill(text)
    expect(page.locator("#look")).to_be_visible()
    expect(page.locator("#weights tbody tr").first).to_be_visible()


def write(page, tokens="40"):
    page.get_by_role("tab", name="Write").click()
    page.locator("#prompt").fill("The ")
    page.locator("#max-tokens").fill(tokens)
    page.locator("#seed").fill("1")
    page.get_by_role("button", name="Write", exact=True).click()


def classify(page):
    page.get_by_role("tab", name="Classify").click()
    page.locator("#to-classify").fill("Der alte Hund schläft .")
    expect(page.locator("#labels")).to_be_visible()


def changed(page, act):
    """Acts, and waits until the weights that are shown are others."""
    before = shown_rows(page)
    act()
    end = time.monotonic() + 30
    while shown_rows(page) == before:
        assert time.monotonic() < end, "the weights have not changed"
        page.wait_for_timeout(50)


def test_translation(browser):
    with browser.page() as page:
        translate(page)
        answer = post(browser.address, "/v1/translate", {"text": SENTENCE, "n_best": 4, "alignments": True})
        best = answer["translations"][0]["sentences"][0]["n_best"]
        expect(page.locator("#translation")).to_have_text(best[0]["text"])
        expect(page.locator("#candidates input")).to_have_count(len(best))
        check_rows_sum_to_one(page)
        layers = page.locator("#layer option").count()
        heads = page.locator("#head option").count() - 1
        assert layers > 1 and heads > 1
        expect(page.locator("#layer")).to_have_value(str(layers))
        assert page.locator("#weights td.aligned").count() == len(best[0]["alignment"])
        changed(page, lambda: page.locator("#layer").select_option("1"))
        check_rows_sum_to_one(page)
        changed(page, lambda: page.locator("#head").select_option("2"))
        rows = check_rows_sum_to_one(page)
        target = post(browser.address, "/v1/attention",
                      {"text": SENTENCE, "translation": best[0]["tokens"], "layer": 1})
        end = target["heads"][1][-1]  # the row of what ends a translation is no part of a word
        assert abs(rows[-1][-1] - end[-1]) < 0.006, (rows[-1], end)
        page.locator("#unit").select_option("tokens")
        expect(page.locator("#weights tbody tr")).to_have_count(len(target["target"]["tokens"]))
        check_rows_sum_to_one(page)
        page.locator("#unit").select_option("words")
        page.locator("#candidates input").nth(1).check()
        expect(page.locator("#translation")).to_have_text(best[1]["text"])
        page.locator("#target-words button").nth(1).click()
        expect(page.locator("#looked")).to_contain_text("the model looks at")
        translate(page, SENTENCE + " The cat sleeps.")
        expect(page.locator("#sentence option")).to_have_count(2)
        page.locator("#sentence").select_option("1")
        expect(page.locator("#source-words")).to_contain_text("cat")
        page.locator("#source").fill(" ")
        expect(page.locator("#look")).to_be_hidden()
        page.locator("#source").fill("<img src=x onerror=alert(1)>")  # goes in as text
        expect(page.locator("#look")).to_be_visible()
        assert page.locator("main img").count() == 0


def test_writing(browser):
    with browser.page() as page:
        write(page)
        expect(page.locator("#write-status")).to_contain_text("40 tokens")
        assert page.locator("#tokens > *").count() == 40
        page.locator("#tokens > *").nth(3).click()
        rows = page.locator("#alternatives-rows tr")
        assert 5 <= rows.count() <= 6
        assert page.locator("#alternatives-rows .chosen").count() == 1
        expected = post(browser.address, "/v1/completions", {
            "model": "writer", "prompt": "The ", "max_tokens": 40, "seed": 1, "temperature": 0.8})["choices"][0]["text"]
        assert page.locator("#tokens").inner_text().replace("↵", "").strip() == expected.strip()
        # A small model is done before anybody can press a button.
        page.evaluate("""() => new MutationObserver(() => {
          if (document.querySelectorAll("#tokens > *").length === 10) document.getElementById("stop").click();
        }).observe(document.getElementById("tokens"), {childList: true})""")
        write(page, "2000")
        expect(page.locator("#write-status")).to_contain_text("stopped")
        count = page.locator("#tokens > *").count()
        assert 10 <= count < 100, count
        page.wait_for_timeout(300)
        assert page.locator("#tokens > *").count() == count
        expect(page.get_by_role("button", name="Write", exact=True)).to_be_enabled()


def test_classification(browser):
    with browser.page() as page:
        classify(page)
        rows = page.locator("#label-rows tr")
        expect(rows).to_have_count(2)
        scores = [float(text.rstrip(" %")) for text in page.locator("#label-rows td:nth-child(2)").all_inner_texts()]
        assert abs(sum(scores) - 100) < 1, scores
        expected = post(browser.address, "/predict", {"model": "topics", "inputs": "Der alte Hund schläft ."})
        expect(page.locator("#best-label")).to_contain_text(expected[0]["label"])


def test_server(browser):
    with browser.page() as page:
        translate(page)
        page.get_by_role("tab", name="Server").click()
        expect(page.locator("#models tbody tr")).to_have_count(3)
        expect(page.locator("#now")).to_contain_text("MB")
        expect(page.locator("#summary")).to_contain_text("tokens/s")
        for link in page.locator("#server a").all():
            assert urllib.request.urlopen(browser.address + link.get_attribute("href")).status == 200


# For each text that is seen, the contrast of its colour with what lies behind it (WCAG 2.2, 1.4.3).
CONTRASTS = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const texts = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!(texts || node.matches("input, select, textarea")) || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const [a, b] = [luminance(parse(style.color)), luminance(behind(node))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.tagName + "#" + node.id + " " + node.textContent.slice(0, 30)]);
  }
  return found;
}"""


def fill_every_panel(page, look):
    """Uses each panel and calls `look` with its name when something stands there."""
    translate(page)
    look("translate")
    write(page)
    expect(page.locator("#write-status")).to_contain_text("40 tokens")
    page.locator("#tokens > *").nth(3).click()
    look("write")
    classify(page)
    look("classify")
    page.get_by_role("tab", name="Server").click()
    expect(page.locator("#models tbody tr")).to_have_count(3)
    look("server")


def test_contrast_in_light_and_dark(browser):
    backgrounds = set()
    for scheme in ("light", "dark"):
        with browser.page(color_scheme=scheme) as page:
            def look(panel):
                found = page.evaluate(CONTRASTS)
                assert len(found) > 10
                worst = min(found)
                assert worst[0] >= 4.5, (scheme, panel, worst)
            fill_every_panel(page, look)
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2


def test_the_scheme_may_change_meanwhile(browser):
    with browser.page(color_scheme="light") as page:
        translate(page)
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(100)
        assert min(page.evaluate(CONTRASTS))[0] >= 4.5


def test_narrow_window(browser):
    with browser.page(viewport={"width": 360, "height": 740}) as page:
        def look(panel):
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, (panel, width)
        fill_every_panel(page, look)


def tab_to(page, id):
    """Presses Tab until the element has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == id:
            return
    raise AssertionError(f"Tab does not lead to {id}")


def test_keyboard_alone(browser):
    with browser.page() as page:
        expect(page.locator("#translate-model")).to_be_enabled()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "tab-translate"
        tab_to(page, "source")
        page.keyboard.type(SENTENCE)
        expect(page.locator("#look")).to_be_visible()
        expect(page.locator("#weights tbody tr").first).to_be_visible()
        tab_to(page, "layer")
        changed(page, lambda: page.keyboard.press("ArrowUp"))
        tab_to(page, "unit")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == "candidate"
        page.keyboard.press("Tab")
        looked = page.locator("#looked").inner_text()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#looked")).not_to_have_text(looked)
        page.locator("#tab-translate").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "tab-write"
        expect(page.locator("#prompt")).to_be_visible()
        tab_to(page, "prompt")
        page.keyboard.type("The ")
        tab_to(page, "go")
        page.keyboard.press("Enter")
        expect(page.locator("#write-status")).to_contain_text("60 tokens")
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.parentElement.id") == "tokens":
                break
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator("#alternatives")).to_be_visible()
        assert page.evaluate("[...document.activeElement.parentElement.children].indexOf(document.activeElement)") == 1


NAMES = """() => {
  const wrong = [], ids = new Set();
  for (const node of document.querySelectorAll("[id]")) {
    if (ids.has(node.id)) wrong.push("twice: " + node.id);
    ids.add(node.id);
  }
  for (const node of document.querySelectorAll("input, select, textarea"))
    if (!node.labels.length) wrong.push("no label: " + node.id);
  for (const node of document.querySelectorAll("[aria-controls], [aria-labelledby], [aria-describedby]"))
    for (const name of ["aria-controls", "aria-labelledby", "aria-describedby"])
      if (node.hasAttribute(name) && !ids.has(node.getAttribute(name))) wrong.push(name + ": " + node.id);
  for (const node of document.querySelectorAll("button, [role=button]"))
    if (!(node.getAttribute("aria-label") || node.textContent).trim()) wrong.push("no name: " + node.id);
  return wrong;
}"""


def test_everything_has_a_name(browser):
    with browser.page() as page:
        fill_every_panel(page, lambda panel: page)
        assert page.evaluate(NAMES) == []
        selected = page.locator("[role=tab][aria-selected=true]")
        expect(selected).to_have_count(1)
        expect(page.get_by_role("tabpanel", name="Server")).to_be_visible()
        for id in ("translation", "looked", "write-status", "best-label"):
            assert page.locator("#" + id).get_attribute("role") == "status"
        assert page.locator("#problem").get_attribute("role") == "alert"


def test_errors_are_said(browser):
    before = len(browser.complaints)
    with browser.page() as page:
        translate(page)
        page.locator("#n-best").fill("99")
        page.locator("#n-best").press("Enter")
        expect(page.locator("#problem")).to_contain_text("n_best")
        page.locator("#n-best").fill("1")
        page.locator("#n-best").press("Enter")
        expect(page.locator("#problem")).to_be_hidden()
        page.locator("#source").fill("dog " * 260)
        expect(page.locator("#problem")).to_contain_text("at most 256")
        expect(page.locator("#weights")).to_be_empty()
        translate(page)
        expect(page.locator("#problem")).to_be_hidden()
    del browser.complaints[before:]  # chromium notes the answers 400 and 413


def test_keys(browser, options):
    before = len(browser.complaints)
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys.toml"
        keys.write_text(f'[test]\nkey = "{KEY}"\n')
        with server(options, "--api-keys", str(keys)) as address, browser.page(address) as page:
            expect(page.locator("#key-form")).to_be_visible()
            page.locator("#key").fill("another key of 16 characters")
            page.keyboard.press("Enter")
            expect(page.locator("#problem")).to_be_visible()
            page.locator("#key").fill(KEY)
            page.keyboard.press("Enter")
            expect(page.locator("#key-form")).to_be_hidden()
            translate(page)
            assert page.evaluate("localStorage.length") == 0
            assert page.evaluate("document.cookie") == ""
            page.reload()
            translate(page)  # the tab still has the key
    assert any("401" in text for text in browser.complaints[before:])
    del browser.complaints[before:]  # chromium notes the answers 401


def test_attention_page(browser, options):
    """The page of `attune inspect --attention`, of a model whose decoder has more layers than its encoder."""
    before = len(browser.complaints)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "attention.html"
        subprocess.run([options.attune, "inspect", options.translation, "--attention", SENTENCE, "--html", str(file)],
                       check=True, stdout=subprocess.DEVNULL)
        head, data, tail = re.split(r'(?<=id="data">)(.*?)(?=</script>)', file.read_text(), maxsplit=1)
        maps = json.loads(data)
        encoder, _, cross = maps
        del encoder["layers"][1:]
        file.write_text(head + json.dumps(maps).replace("<", "\\u003c") + tail)
        with browser.page(file.as_uri()) as page:
            layers = page.locator("#layers button")
            expect(layers).to_have_count(1)
            page.get_by_role("button", name=cross["name"]).click()
            expect(layers).to_have_count(len(cross["layers"]))
            layers.last.click()
            expect(page.locator("#layers [aria-pressed=true]")).to_have_text(str(len(cross["layers"])))
            page.get_by_role("button", name=encoder["name"]).click()
            expect(layers).to_have_count(1)
            expect(layers).to_have_attribute("aria-pressed", "true")
    assert set(browser.complaints[before:]) <= {file.as_uri()}  # which no server has sent
    del browser.complaints[before:]


def take_pictures(browser, folder):
    with browser.page(viewport={"width": 760, "height": 500}, color_scheme="light") as page:
        translate(page)
        page.locator("#target-words button").nth(2).click()
        page.mouse.move(0, 0)
        page.screenshot(path=folder / "page_translate.png", full_page=True)
    with browser.page(viewport={"width": 760, "height": 500}, color_scheme="dark") as page:
        write(page, "120")
        expect(page.locator("#write-status")).to_contain_text("120 tokens")
        page.locator("#tokens > *").nth(12).click()
        page.mouse.move(0, 0)
        page.screenshot(path=folder / "page_write.png", full_page=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("attune", "translation", "classifier", "language_model"):
        parser.add_argument(name)
    parser.add_argument("--pictures", type=pathlib.Path)
    options = parser.parse_args()
    with sync_playwright() as playwright, server(options) as address:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"),
                                              args=["--no-sandbox"] if os.getuid() == 0 else [])
        browser = Browser(chromium, address)
        expect.set_options(timeout=30_000)
        if options.pictures:
            return take_pictures(browser, options.pictures)
        for test in (test_translation, test_writing, test_classification, test_server, test_contrast_in_light_and_dark,
                     test_the_scheme_may_change_meanwhile, test_narrow_window, test_keyboard_alone,
                     test_everything_has_a_name, test_errors_are_said):
            begin = time.monotonic()
            test(browser)
            print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
        for test in (test_keys, test_attention_page):
            test(browser, options)
            print(test.__name__)
        assert not browser.complaints, browser.complaints
        chromium.close()


if __name__ == "__main__":
    main()
