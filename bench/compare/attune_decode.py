#!/usr/bin/env python3
"""Translates a text with Attune's Python package, and prints speed and memory as one line of JSON."""

import argparse
import json
import sys
import time
from pathlib import Path

import attune

from decoding_program import finish_texts, parse_decoding_options, read_lines
from in_turn import own_peak_memory_mb


def measure(o: argparse.Namespace) -> dict:
    import_mb = own_peak_memory_mb()
    translator = attune.Translator(o.weights)
    sentences = read_lines(o.source)
    options = {"beam_size": o.beam_size, "batch_sentences": o.batch_size, "threads": o.threads}

    translator.translate(sentences[: o.batch_size], **options)  # so that what happens once has happened
    start = time.perf_counter()
    translations = translator.translate(sentences, **options)
    seconds = time.perf_counter() - start
    result = {"program": "attune's Python package", "threads": o.threads, "import_memory_mb": import_mb}
    tokens = sum(len(t.tokens) for t in translations)
    return result | finish_texts(o, [t.text for t in translations], tokens, seconds)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--weights", type=Path, required=True, help="model folder that is used; --model is what it was made of")
    o = parse_decoding_options(p)
    try:
        print(json.dumps(measure(o)))
    except (OSError, ValueError, RuntimeError) as error:
        print(f"attune_decode: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
