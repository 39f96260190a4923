#!/usr/bin/env python3
"""Writes sacrebleu.json: sentence pairs with the scores and tokens that sacreBLEU gives them, for the tests beside it.

    pip install sacrebleu==2.6.0 && python3 make_metric_data.py
"""

import json
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

PAIRS = [  # (hypothesis, reference)
    ("The cat sat on the mat.", "The cat is sitting on the mat."),
    ("It costs $1,000.50, not 1.000,50 €!", "It costs $1,000.5 and not €1.000,50."),
    ("He said &quot;yes&quot; &amp; left &lt;b&gt;", 'He said "yes" & left <b>'),
    ("&amp;quot; stays &amp;amp; strange &nbsp;", "&quot; stays &amp; strange &nbsp;"),
    ("A well-known 10-year-old 3-4 split - done", "A well known 10-year old 3 - 4 split – done"),
    ("Die Straße führt über die Brücke nach Köln.", "Die Strasse führt über eine Brücke nach Köln ."),
    ("ÄÖÜ ẞ ÇA VA, İSTANBUL KELVIN Å", "äöü ß ça va, i̇stanbul kelvin å"),
    ("ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ, ΑΣ'Α Σ", "οδυσσευς και σοφος, ασ'α σ"),
    ("МОСКВА – Столица России.", "Москва — столица России."),
    ("我喜欢吃苹果。", "我也喜欢吃红苹果。"),
    ("今日は いい　天気 です", "今日はいい天気ですね"),
    ("Nice 😀👍🏽 party 🎉!", "Nice 😀 👍🏽 party 🎉🎉!"),
    ("a\u00a0b\u2003c\u3000d\u200be\x1cf\x85g", "a b c d e f g"),
    ("tab\tand  two   spaces ", " tab and two spaces"),
    ("broken-\nline and\nnext <skipped>line-\n", "brokenline and next line-"),
    ("e.g. 3.14, 5. 6, .7 8.,9 ..., x,y 1,2,3.", "e.g. 3,14; 5 . 6 .7 8.9 ... x, y 1,2,3"),
    ("[x] {y} `z` ^w_ ~v | #u @t *s %r \\q /p +o =n ; : ?", "x y z w v u t s r q p o n ! ' - . ,"),
    ("don't we'll o'clock rock'n'roll", "do n't we 'll o'clock rock 'n' roll"),
    ("the the the the the the the", "the cat is on the mat"),
    ("é e\u0301 .\u00e9. 5\u00e9- -5 5-é", "e\u0301 é . é . 5 é - - 5 5 - é"),
    ("", "An empty hypothesis loses by brevity."),
    ("Something from nothing.", ""),
    ("", ""),
    ("   ", "\u3000"),
]


def generated_pairs(count, seed):
    """Sentences of nasty pieces with some pieces dropped, repeated, swapped or replaced."""
    rng = random.Random(seed)
    pieces = ["der", "die", "das", "Haus", "1", "23", "4.5", "6,7", ".", ",", "-", "!", "'s", "&quot;", "&amp;", "$", "€",
              "ü", "ß", "中", "文", "😀", "(a)", "x-y", "5-6", "\u00a0", "Ω", "…", "„Ja“", "&", "/", "%"]
    pairs = []
    for _ in range(count):
        reference = [rng.choice(pieces) for _ in range(rng.randint(1, 25))]
        hypothesis = []
        for piece in reference:
            kind = rng.random()
            if kind < 0.1:
                continue
            hypothesis.append(rng.choice(pieces) if kind < 0.25 else piece)
            if kind > 0.95:
                hypothesis.append(piece)
        joined = ["".join(p + rng.choice(["", " ", " ", " "]) for p in side) for side in (hypothesis, reference)]
        pairs.append(tuple(joined))
    return pairs


def corpora():
    yield "hand-written", PAIRS
    for i, pair in enumerate(PAIRS):
        yield f"hand-written {i}", [pair]
    yield "perfect match", [(r, r) for _, r in PAIRS]
    yield "no match", [("a b c d e", "v w x y z"), ("f g", "u")]
    yield "no match of 2-grams and above", [("one two three four five", "five four three two one")]
    yield "no match of 4-grams", [("one two three five six", "one two three four six")]
    yield "too short for 4-grams", [("one two three", "one two three")]
    yield "one word", [("Hallo", "Hallo")]
    yield "one character", [("a", "a")]
    yield "short hypotheses", [("Ein Mann", "Ein Mann geht durch die Stadt"), ("Zwei Hunde spielen im", "Zwei Hunde spielen im Park")]
    yield "long hypotheses", [("Ein Mann geht durch die Stadt", "Ein Mann"), ("Zwei Hunde spielen im Park", "Zwei Hunde")]
    yield "generated", generated_pairs(60, seed=1)
    yield "moved", moved_pairs(200, seed=3)
    for i in range(100):
        yield f"moved {i}", moved_pairs(1, seed=200 + i)[:1]
    for i in range(12):
        yield f"generated {i}", generated_pairs(2, seed=100 + i)


def moved_pairs(count, seed):
    """Sentences of few words, in which phrases were moved and words dropped, added and repeated: work for TER's shifts."""
    rng = random.Random(seed)
    pairs = []
    for i in range(count):
        vocabulary = [chr(ord("a") + w) for w in range(rng.choice([8, 26, 26]))]
        reference = [rng.choice(vocabulary) for _ in range(rng.choice([4, 8, 12, 20, 60 if i % 20 == 0 else 10]))]
        hypothesis = list(reference)
        for _ in range(rng.randint(0, 4)):
            begin, length = rng.randrange(len(hypothesis)), rng.randint(1, 12)
            phrase = hypothesis[begin:begin + length]
            rest = hypothesis[:begin] + hypothesis[begin + length:]
            to = rng.randint(0, len(rest))
            hypothesis = rest[:to] + phrase + rest[to:]
        hypothesis = [rng.choice(vocabulary) if rng.random() < 0.1 else w for w in hypothesis if rng.random() > 0.1]
        pairs.append((" ".join(hypothesis), " ".join(reference)))
    words = " ".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(120))
    return pairs + [("a b", words), (words, "b a"), ("", words), (words, ""), (words[60:] + " " + words[:60], words)]


def with_more_references(pairs, seed):
    """The references of each pair, with a part of the hypothesis and a reordered reference as two more."""
    rng = random.Random(seed)
    lists = [[r for _, r in pairs], [], []]
    for hypothesis, reference in pairs:
        words = hypothesis.split()
        lists[1].append(" ".join(w for w in words if rng.random() < 0.8))
        words = reference.split()
        rng.shuffle(words)
        lists[2].append(" ".join(words + words[:rng.randint(0, 3)]))
    return lists


def bleu(hypotheses, references, **options):
    score = BLEU(force=True, **options).corpus_score(hypotheses, references)
    return {"score": score.score, "precisions": score.precisions, "brevity_penalty": score.bp,
            "hypothesis_length": score.sys_len, "reference_length": score.ref_len}


def ter(hypotheses, references):
    score = TER().corpus_score(hypotheses, references)
    return {"score": score.score, "edits": score.num_edits, "reference_length": score.ref_length}


def case(name, pairs):
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    return {"name": name, "hypotheses": hypotheses, "references": references,
            "bleu": {"13a": bleu(hypotheses, [references], tokenize="13a"),
                     "13a lowercase": bleu(hypotheses, [references], tokenize="13a", lowercase=True),
                     "none": bleu(hypotheses, [references], tokenize="none")},
            "chrf": CHRF().corpus_score(hypotheses, [references]).score,
            "ter": ter(hypotheses, [references])}


def several(name, pairs, seed):
    hypotheses, references = [h for h, _ in pairs], with_more_references(pairs, seed)
    return {"name": name, "hypotheses": hypotheses, "references": references,
            "bleu": bleu(hypotheses, references, tokenize="13a"),
            "chrf": CHRF().corpus_score(hypotheses, references).score,
            "ter": ter(hypotheses, references)}


def main():
    lines = [line for pair in PAIRS + generated_pairs(40, seed=2) for line in pair]
    letters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and chr(c) != chr(c).lower()]
    data = {
        "sacrebleu": sacrebleu.__version__,
        "cases": [case(name, pairs) for name, pairs in corpora()],
        "several_references": [several(name, pairs, seed=9) for name, pairs in corpora() if len(pairs) > 1 and name != "moved"],
        "tokenize_13a": [{"line": line, "tokens": Tokenizer13a()(line)} for line in lines],
        "lowercase": [{"text": h, "lower": h.lower()} for h, _ in PAIRS],
        "capitals": {"all": "".join(letters), "lower": " ".join(c.lower() for c in letters)},
        "spaces": "".join(chr(c) for c in range(0x110000) if chr(c).isspace()),
    }
    path = pathlib.Path(__file__).with_name("sacrebleu.json")
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
