#!/usr/bin/env python3
"""Greedy generation with llama.cpp from token ids, and its seconds as one line of JSON."""

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path

import llama_cpp as llama
import numpy as np

from in_turn import check_at_least_1, own_peak_memory_mb


def quiet(_level: int, _text: bytes, _data: object) -> None:
    pass


class Context:
    """Throws ValueError."""

    def __init__(self, o: argparse.Namespace, length: int):
        self.callback = llama.llama_log_callback(quiet)
        llama.llama_log_set(self.callback, ctypes.c_void_p(0))
        llama.llama_backend_init()
        of_model = llama.llama_model_default_params()
        of_model.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(str(o.gguf).encode(), of_model)
        if not self.model:
            raise ValueError(f"{o.gguf}: llama.cpp does not load it")
        of_context = llama.llama_context_default_params()
        of_context.n_ctx, of_context.n_batch = length, length
        if o.cache == "float32":  # as Attune's; only the plain attention reads it
            of_context.type_k = of_context.type_v = llama.GGML_TYPE_F32
            of_context.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        of_context.n_threads = of_context.n_threads_batch = o.threads
        self.context = llama.llama_init_from_model(self.model, of_context)
        if not self.context:
            raise ValueError(f"{o.gguf}: llama.cpp makes no context of {length} tokens for it")
        self.vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))

    def clear(self) -> None:
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)

    def likeliest_after(self, tokens: list[int]) -> int:
        """Goes on with the tokens; logits of the last one alone."""
        ids = (llama.llama_token * len(tokens))(*tokens)
        if llama.llama_decode(self.context, llama.llama_batch_get_one(ids, len(tokens))) != 0:
            raise ValueError("llama_decode failed")
        logits = llama.llama_get_logits_ith(self.context, -1)
        return int(np.ctypeslib.as_array(logits, shape=(self.vocab,)).argmax())


def measure(o: argparse.Namespace) -> dict:
    import_mb = own_peak_memory_mb()
    prompt = [int(n) for n in o.prompt.read_text(encoding="utf-8").split()]
    context = Context(o, len(prompt) + o.tokens)
    if not o.cold:
        context.likeliest_after(prompt)  # so that what happens once has happened
        context.clear()
    start = time.perf_counter()
    tokens = [context.likeliest_after(prompt)]
    middle = time.perf_counter()
    while len(tokens) < o.tokens:
        tokens.append(context.likeliest_after(tokens[-1:]))
    end = time.perf_counter()
    return {
        "program": "llama.cpp",
        "threads": o.threads,
        "prompt_tokens_per_s": len(prompt) / (middle - start),
        "tokens_per_s": (o.tokens - 1) / (end - middle),
        "tokens": tokens,
        "peak_memory_mb": own_peak_memory_mb(),
        "import_memory_mb": import_mb,
    }


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--gguf", type=Path, required=True, help="the model")
    p.add_argument("--prompt", type=Path, required=True, help="file with token ids")
    p.add_argument("--tokens", type=int, default=128, help="to generate")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--cache", choices=["float16", "float32"], default="float16", help="llama.cpp's is float16")
    p.add_argument("--cold", action="store_true", help="time the first pass; otherwise the prompt is read twice")
    o = p.parse_args()
    check_at_least_1(p, o, ("threads",))
    if o.tokens < 2:
        p.error(f"--tokens {o.tokens}: expected at least 2")
    try:
        print(json.dumps(measure(o)))
    except (OSError, ValueError) as error:
        print(f"llama_decode: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
