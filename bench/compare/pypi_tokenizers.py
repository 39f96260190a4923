"""How fast PyPI's `tokenizers` reads a text, line by line; one JSON object, as `attune bench tokenizer --json` has it."""

import argparse
import json
import os
import statistics
import time


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("tokenizer", help="tokenizer.json")
    p.add_argument("--data", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(o.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if o.threads > 1 else "false"
    from tokenizers import Tokenizer  # reads the environment

    tokenizer = Tokenizer.from_file(o.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with open(o.data, encoding="utf-8", newline="\n") as file:
        lines = file.read().removesuffix("\n").split("\n")
    seconds, tokens = [], 0
    for number in range(o.rounds + 1):  # the first fills caches and is not counted
        begin = time.perf_counter()
        encodings = tokenizer.encode_batch_fast(lines, add_special_tokens=False)  # without places in the text
        if number > 0:
            seconds.append(time.perf_counter() - begin)
        tokens = sum(map(len, encodings))
        del encodings
    total_bytes = sum(len(line.encode()) for line in lines)
    middle = statistics.median(seconds)
    result = {"program": "tokenizers", "threads": o.threads, "lines": len(lines), "bytes": total_bytes}
    result |= {"tokens": tokens, "seconds": middle}
    result |= {"mb_per_s": total_bytes / middle / 1e6, "tokens_per_s": tokens / middle}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
