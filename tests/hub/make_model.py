#!/usr/bin/env python3
"""Makes a small random folder of the Hugging Face hub with what transformers computes of it, for attune_hub_test.

    make_model.py ElectraForSequenceClassification OUT '{"hidden_size": 16, "num_attention_heads": 2, ...}'
    make_model.py GPT2LMHeadModel OUT '{"n_embd": 16, ...}' '{"no_repeat_ngram_size": 2}'

The class is one of transformers. The JSON has the fields of its configuration, and of its generation settings. Folders in tests/hub/models are walked
by attune_hub_test, and so are those of another folder that ATTUNE_HF_MODELS names.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

NEW_TOKENS = 24


def randomise(model, seed):
    """Norms are 1 and biases 0 at first, which hides mistakes."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue  # sinusoids, which are in no file
            norm = "norm" in name.lower() and name.endswith("weight") and parameter.dim() == 1
            parameter.copy_((1.0 if norm else 0.0) + 0.2 * torch.randn_like(parameter))
        parameters = dict(model.named_parameters(remove_duplicate=False))
        for name, buffer in model.state_dict().items():  # the router's bias of DeepSeek-V3 is a buffer
            if name not in parameters and buffer.is_floating_point():
                buffer.copy_(0.2 * torch.randn_like(buffer))


def inputs(vocab):
    """Three texts of different lengths, padded with 0."""
    lengths = [9, 4, 13]
    ids = torch.randint(5, vocab, (3, max(lengths)))
    mask = torch.tensor([[int(i < n) for i in range(max(lengths))] for n in lengths])
    return ids * mask, mask


def expected_of(model, ids, mask):
    """The tensors and the tokens that the tests compare."""
    tensors, tokens = {"input_ids": ids, "attention_mask": mask}, {"tokenizer": []}
    rows = [(ids[i : i + 1, : int(mask[i].sum())], mask[i : i + 1, : int(mask[i].sum())]) for i in range(len(ids))]
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            tensors["decoder_input_ids"] = torch.randint(5, model.config.vocab_size, (3, 7))
            output = model(input_ids=ids, attention_mask=mask, decoder_input_ids=tensors["decoder_input_ids"])
            tensors["encoder_output"] = output.encoder_last_hidden_state
        else:
            output = model(input_ids=ids, attention_mask=mask)
        for name in ("logits", "prediction_logits", "last_hidden_state"):
            if name in output:
                tensors["logits" if "logits" in name else name] = output[name]
                break
        if model.can_generate():
            search = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
            beams = {"beam_4": True, "beam_4_heuristic": False} if model.config.is_encoder_decoder else {"beam_4": True}
            ways = {"greedy": {"num_beams": 1}}
            ways |= {name: {"num_beams": 4, "early_stopping": early} for name, early in beams.items()}
            for name, more in ways.items():
                tokens[name] = [model.generate(i, attention_mask=m, **search, **more)[0].tolist() for i, m in rows]
    return tensors, tokens


def write_model(model, out, tensors, tokens):
    """Writes the folder: the model, a vocabulary of its size, and what expected_of() returned."""
    model.save_pretrained(out)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"w{i}" for i in range(model.config.vocab_size - len(pieces))]
    (out / "vocab.txt").write_text("\n".join(pieces) + "\n")
    save_file({key: value.contiguous() for key, value in tensors.items()}, out / "expected.safetensors")
    (out / "expected.json").write_text(json.dumps(tokens) + "\n")


def main():
    name, out, fields = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(sys.argv[3])
    generation = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    model_class = getattr(transformers, name)
    model = model_class(model_class.config_class(**fields)).eval()
    randomise(model, seed=1)
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    write_model(model, out, *expected_of(model, *inputs(model.config.vocab_size)))


if __name__ == "__main__":
    main()
