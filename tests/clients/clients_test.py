#!/usr/bin/env python3
"""Asks `attune serve` with libretranslatepy and openai, as programs that use them do.

    clients_test.py ATTUNE

The models are those of tests/hub/models. scripts/test-clients makes the environment and runs this.
"""

import contextlib
import json
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import openai
from libretranslatepy import LibreTranslateAPI

MODELS = pathlib.Path(__file__).parent.parent / "hub" / "models"
TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
KEY = "a key of the test 0123456789"


def make_models(folder):
    """Folders by name: one that translates both ways, a chat model, and one of embeddings."""
    chat = folder / "chat"
    shutil.copytree(MODELS / "gpt2", chat)
    config = json.loads((chat / "tokenizer_config.json").read_text())
    (chat / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": TEMPLATE}))
    embed = folder / "embed"
    shutil.copytree(MODELS / "bert-classifier", embed)
    config = json.loads((embed / "config.json").read_text())
    (embed / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    without_classifier(embed / "model.safetensors")
    return {"en-de": MODELS / "marian", "de-en": MODELS / "marian", "chat": chat, "embed": embed}


def without_classifier(file):
    """Takes the tensors of the classifier out of a file of safetensors."""
    data = file.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, tensors, kept, at = json.loads(data[8:8 + length]), data[8 + length:], {}, 0
    body = b""
    for name, entry in header.items():
        if name == "__metadata__" or name.startswith("classifier."):
            continue
        begin, end = entry["data_offsets"]
        body += tensors[begin:end]
        kept[name] = {**entry, "data_offsets": [at, at := at + end - begin]}
    text = json.dumps(kept).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + body)


@contextlib.contextmanager
def server(attune, models, keys):
    """The address of `attune serve` with these models."""
    command = [attune, "serve", *(f"{name}={folder}" for name, folder in models.items()), "--port", "0",
               "--api-keys", str(keys)]
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


class LibreTranslate(unittest.TestCase):
    address = ""

    def setUp(self):
        self.api = LibreTranslateAPI(self.address, KEY)

    def test_translates(self):
        text = self.api.translate("hello", "en", "de")
        self.assertIsInstance(text, str)
        self.assertEqual(text, self.api.translate("hello", "en", "de"))

    def test_says_which_languages_there_are(self):
        targets = {language["code"]: language["targets"] for language in self.api.languages()}
        self.assertEqual(targets, {"de": ["en"], "en": ["de"]})

    def test_detects_a_language(self):
        found = self.api.detect("Der alte Hund schläft im Garten, und die Katze sitzt auf der Mauer.")
        self.assertEqual(found[0]["language"], "de")
        self.assertEqual(self.api.detect("Hello")[0]["language"], "en")
        self.assertIsInstance(self.api.translate("Hello", "auto", "de"), str)


class OpenAI(unittest.TestCase):
    address = ""

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.address + "/v1", api_key=KEY, max_retries=0)
        self.messages = [{"role": "user", "content": "the dog"}]

    def test_models(self):
        self.assertEqual({m.id for m in self.client.models.list()}, {"en-de", "de-en", "chat", "embed"})
        self.assertEqual(self.client.models.retrieve("chat").id, "chat")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("none")

    def test_completions_whole_and_streamed(self):
        fields = {"model": "chat", "prompt": "the dog", "max_tokens": 12, "seed": 3, "logprobs": 2}
        whole = self.client.completions.create(**fields)
        self.assertEqual(whole.usage.completion_tokens, len(whole.choices[0].logprobs.tokens))
        text = "".join(event.choices[0].text for event in self.client.completions.create(**fields, stream=True))
        self.assertEqual(text, whole.choices[0].text)

    def test_chat_whole_and_streamed(self):
        fields = {"model": "chat", "messages": self.messages, "max_tokens": 12, "seed": 3}
        whole = self.client.chat.completions.create(**fields, n=2, logprobs=True, top_logprobs=2)
        self.assertEqual(len(whole.choices), 2)
        for choice in whole.choices:
            self.assertEqual(choice.message.role, "assistant")
            self.assertLessEqual(len(choice.logprobs.content), 12)
            for token in choice.logprobs.content:
                self.assertEqual(bytes(token.bytes).decode(), token.token)
        text, tokens = "", 0
        for event in self.client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}):
            tokens = event.usage.completion_tokens if event.usage else tokens
            text += "".join(choice.delta.content or "" for choice in event.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertGreater(tokens, 0)

    def test_embeddings(self):
        texts = ["a small cat", "dogs bark"]  # the client asks for base64
        found = self.client.embeddings.create(model="embed", input=texts)
        plain = self.client.embeddings.create(model="embed", input=texts, encoding_format="float")
        for one, other in zip(found.data, plain.data, strict=True):
            self.assertEqual(len(one.embedding), 64)
            for a, b in zip(one.embedding, other.embedding, strict=True):
                self.assertAlmostEqual(a, b, places=6)
        ids = self.client.embeddings.create(model="embed", input=[[5, 6, 7], [8]], encoding_format="float")
        self.assertEqual(len(ids.data), 2)

    def test_errors_are_those_of_the_client(self):
        with self.assertRaises(openai.BadRequestError) as long:
            self.client.completions.create(model="chat", prompt="the dog " * 500)
        self.assertEqual((long.exception.param, long.exception.code), ("prompt", "context_length_exceeded"))
        with self.assertRaises(openai.BadRequestError) as tools:
            self.client.chat.completions.create(model="chat", messages=self.messages, tools=[
                {"type": "function", "function": {"name": "f", "parameters": {}}}])
        self.assertEqual(tools.exception.param, "tools")
        with self.assertRaises(openai.NotFoundError):
            self.client.completions.create(model="none", prompt="a")
        with self.assertRaises(openai.AuthenticationError):
            self.client.with_options(api_key="none").models.list()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        keys = folder / "keys.toml"
        keys.write_text(f'[test]\nkey = "{KEY}"\n')
        with server(sys.argv[1], make_models(folder), keys) as address:
            LibreTranslate.address = OpenAI.address = address
            passed = unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()
    sys.exit(0 if passed else 1)


main()
