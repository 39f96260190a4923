#!/usr/bin/env python3
"""Generates greedily from a hub folder with transformers in bfloat16, for hub_decode.py."""

import argparse
import json
import sys

import torch
from transformers import AutoModelForCausalLM


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    model = AutoModelForCausalLM.from_pretrained(o.model, dtype=torch.bfloat16)
    ids = torch.tensor([[1, 5, 6, 7, 8]])
    with torch.inference_mode():
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=o.tokens,
                              max_new_tokens=o.tokens)
    print(json.dumps({"tokens": made.shape[1] - ids.shape[1]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
