#!/usr/bin/env python3
"""Translates a text with a model of CTranslate2, and prints speed and memory as one line of JSON.

The model is one that to_ctranslate2.py has written; --model is the folder of Attune that it was made of.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.modules["torch"] = None  # ctranslate2 would take it along where it is installed, with its memory and its threads
import ctranslate2

from decoding_program import finish, parse_decoding_options, read_lines
from in_turn import own_peak_memory_mb
from model_folder import Pieces


def measure(o: argparse.Namespace) -> dict:
    import_mb = own_peak_memory_mb()
    workers, threads = (o.threads, 1) if o.workers else (1, o.threads)
    translator = ctranslate2.Translator(
        str(o.converted), compute_type=o.compute_type, inter_threads=workers, intra_threads=threads
    )
    pieces = Pieces(o.model, "source")
    sources = [pieces.encode(line) for line in read_lines(o.source)]

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        found = translator.translate_batch(
            sentences,
            beam_size=o.beam_size,
            length_penalty=o.length_penalty,
            max_batch_size=o.batch_size,
            batch_type="examples",
            max_decoding_length=o.max_length,
        )
        return [f.hypotheses[0] for f in found]

    translate(sources[: workers * o.batch_size])  # so that what happens once has happened
    start = time.perf_counter()
    translations = translate(sources)
    seconds = time.perf_counter() - start
    result = {
        "program": "ctranslate2",
        "version": ctranslate2.__version__,
        "threads": o.threads,
        "compute_type": translator.compute_type,
        "import_memory_mb": import_mb,
    }
    return result | finish(o, Pieces(o.model, "target"), translations, seconds)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--converted", type=Path, required=True, help="folder of CTranslate2")
    p.add_argument("--compute-type", choices=["float32", "int8", "int8_float32"], default="float32")
    p.add_argument("--workers", action="store_true", help="as many batches at once as --threads, each on one")
    o = parse_decoding_options(p)
    try:
        print(json.dumps(measure(o)))
    except (OSError, ValueError, RuntimeError) as error:
        print(f"ctranslate2_decode: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
