"""Writes tests/text/data: small tokenizers of every kind, and what PyPI's `tokenizers` makes of texts with them.

  pip install tokenizers==0.23.*
  python bench/compare/tokenizer_data.py README.md docs/*.md

Trains on the files that are named.
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"

TEXTS = [
    "The old dog sleeps.", "Zwei Hunde laufen über die grüne Wiese!", "  two  spaces,\ttabs\nand\r\nline ends \n\n end ",
    "I'll say it's we'VE got 'em; DON'T she'd they'ſ", "1234567890 3.14 ½ ² Ⅷ ٣٤ １２３", "日本語の文章です。中文句子，한국어 문장",
    "naïve café e\u0301cole A\u030angstro\u0308m \u1e9b\u0323 ﬁ ﷺ ™", "🙂 👩‍👩‍👧 🇩🇪 ❤️ 👍🏽", "def f(x):\n    return x**2  # 100%\n",
    "<s>a <mask> b</s> [MASK] <|endoftext|>x", "HTTPServer camelCase ǅungla ʰa ـه XMLHttp's", "▁a ▁▁b _c_", "a\u00a0b\u200bc\u2028d\u3000e\u0085f",
    "İstanbul ΟΔΟΣ Straße ẞ", "\u0301\u0301 \u0600x \u202eabc \ufffd \x01\x7f", "x" * 120, "а́ Привет, мир! हिन्दी में ਪੰਜਾਬੀ ไทย", "", " ",
]


def bpe(pre_tokenizer, normalizer=None, post=None, decoder=None, size=500, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer, tokenizer.normalizer = pre_tokenizer, normalizer
    tokenizer.decoder = decoder or decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<s>", "</s>", "<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return tokenizer, trainer, post


def split(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama(size=500):
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=size + 256, special_tokens=["<unk>", "<s>", "</s>"] + alphabet, show_progress=False)
    return tokenizer, trainer, lambda t: processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1",
                                                                        special_tokens=[("<s>", t.token_to_id("<s>"))])


def word_piece(size=500):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False)
    return tokenizer, trainer, lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))


def unigram(size=250, normalizer=None, pre_tokenizer=None, **options):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer or normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    return tokenizer, trainer, lambda t: processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", 1)])


def word_level(size=300):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.UnicodeScripts()])
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False)
    return tokenizer, trainer, None


KINDS = {
    "gpt2": lambda: bpe(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "roberta": lambda: bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), post=lambda t: processors.RobertaProcessing(("</s>", 1), ("<s>", 0))),
    "llama3": lambda: bpe(split(LLAMA3), ignore_merges=True),
    "qwen2": lambda: bpe(split(QWEN2), normalizer=normalizers.NFC()),
    "o200k": lambda: bpe(split(O200K)),
    "deepseek": lambda: bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"), pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])),
    "bloom": lambda: bpe(split(BLOOM)),
    "falcon": lambda: bpe(pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])),
    "clip": lambda: bpe(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]), end_of_word_suffix="</w>", unk_token="<|endoftext|>"),
    "llama": llama,
    "bert": word_piece,
    "unigram": unigram,
    "unigram-first": lambda: unigram(normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")]), pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first")),
    "word-level": word_level,
}


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests" / "text" / "data"
    folder.mkdir(exist_ok=True)
    lines = TEXTS + [line for name in sys.argv[1:] for line in pathlib.Path(name).read_text().split("\n")]
    expected = {}
    for name, make in KINDS.items():
        tokenizer, trainer, post = make()
        tokenizer.train_from_iterator(lines[:400] if name.startswith("unigram") else lines, trainer)
        if post:
            tokenizer.post_processor = post(tokenizer)
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
        tokenizer.add_tokens([AddedToken("dog", single_word=True, normalized=True)])
        tokenizer.save(str(folder / f"{name}.json"), pretty=False)
        samples = []
        for text, other in zip(TEXTS, TEXTS[1:] + TEXTS[:1]):
            pair = tokenizer.encode(text, other)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            samples.append({"text": text, "ids": ids, "for_model": tokenizer.encode(text).ids, "pair": pair.ids, "pair_types": pair.type_ids,
                            "decoded": tokenizer.decode(ids), "decoded_whole": tokenizer.decode(ids, skip_special_tokens=False)})
        expected[name] = samples
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
