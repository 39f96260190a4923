#!/usr/bin/env python3
"""Lower-cases the text of label<TAB>text lines and splits words from punctuation: split_words.py < raw.tsv > train.tsv"""

import re
import sys

for line in sys.stdin:
    label, text = line.rstrip("\n").split("\t", 1)
    words = re.findall(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]", text.replace("<br />", " ").lower())
    print(label, " ".join(words), sep="\t")
