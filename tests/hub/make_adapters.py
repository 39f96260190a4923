"""Writes adapters of PEFT for models of tests/hub/models, with the logits that transformers computes with them.

    python tests/hub/make_adapters.py        (needs torch, transformers, peft)
"""

import json
import pathlib

import peft
import torch
import transformers

HERE = pathlib.Path(__file__).parent
IDS = [5, 9, 2, 11, 7]


def write(name, base, auto, config, saved=()):
    torch.manual_seed(3)
    model = peft.get_peft_model(auto.from_pretrained(HERE / "models" / base), config)
    for parameter in model.parameters():
        if parameter.requires_grad:  # B would be zeros
            torch.nn.init.normal_(parameter, std=0.2)
    model.eval()
    folder = HERE / "adapters" / name
    model.save_pretrained(folder)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([IDS])).logits
    expected = {"base": base, "ids": IDS, "logits": logits.reshape(-1).tolist()}
    (folder / "expected.json").write_text(json.dumps(expected))
    (folder / "README.md").unlink(missing_ok=True)
    stored = json.loads((folder / "adapter_config.json").read_text())
    stored["base_model_name_or_path"] = base
    (folder / "adapter_config.json").write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


lora = peft.LoraConfig
write("gpt2", "gpt2", transformers.AutoModelForCausalLM,
      lora(r=2, lora_alpha=6, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, task_type="CAUSAL_LM"))
write("starcoder2", "starcoder2", transformers.AutoModelForCausalLM,
      lora(r=4, lora_alpha=4, use_rslora=True, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM",
           rank_pattern={"v_proj": 2}, alpha_pattern={"v_proj": 3}))
write("bert", "bert-classifier", transformers.AutoModelForSequenceClassification,
      lora(r=2, lora_alpha=4, target_modules=["query", "value", "output.dense"], task_type="SEQ_CLS"))
