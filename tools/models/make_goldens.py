#!/usr/bin/env python3
"""Makes tests/data/models: tiny models with random weights, as Transformers writes them, and what PyTorch computes with them.

usage: make_goldens.py OUTPUT_FOLDER        (needs torch, transformers, safetensors)

Folders: bert, roberta, distilbert (F32); bert_bf16 (gelu_new), roberta_f16; bert_sharded (the encoder of bert alone: no prefix, no head,
two shards, LayerNorm.gamma/beta in one). Each of the first five has a golden.json:

  logits    what the model says to `sequences` [{ids, type_ids?}], one row of `logits` each; weights as stored, computed in f32
  training  (f32 folders) a run of ten steps from the stored weights, no dropout:
    hyper_parameters   AdamW (decoupled; no decay on biases and norms), linear schedule with warm-up, no clipping
    smoothed_loss      of the first batch before any step, with label smoothing `smoothing`
    steps              [{learning_rate, sequences, labels, loss, grad_norm}]: loss (mean over the batch) and norm of all gradients
                       before the update, learning_rate of the update
    final_logits       of `logits.sequences` after the ten steps
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForSequenceClassification, BertConfig, DistilBertConfig, RobertaConfig, get_linear_schedule_with_warmup)

VOCAB, LABELS = 120, ["anger", "joy", "optimism"]
HYPER = {"optimizer": "adamw", "learning_rate": 2e-3, "schedule": "linear", "warmup_steps": 2, "total_steps": 10, "beta1": 0.9, "beta2": 0.999,
         "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 0}


def config_of(family, act="gelu"):
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {n: i for i, n in enumerate(LABELS)}}
    sizes = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, hidden_act=act, **labels)
    if family == "bert":
        return BertConfig(max_position_embeddings=40, **sizes)
    if family == "roberta":
        return RobertaConfig(max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, **sizes)
    return DistilBertConfig(vocab_size=VOCAB, dim=32, n_layers=2, n_heads=4, hidden_dim=64, activation="relu", max_position_embeddings=40, **labels)


def make_model(config, seed):
    """Weights large enough that a wrong detail shows in the logits."""
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.2 if p.dim() > 1 else 0.1)
            if "norm" in name.lower() and name.endswith("weight"):
                p.add_(1)
    return model


def sequences_of(rng, count, config):
    """Random ids without the padding one; lengths from 1 to the longest the model takes."""
    out = []
    for i in range(count):
        n = [1, 40, 2, 17][i] if i < 4 and count > 4 else int(torch.randint(2, 14, (1,), generator=rng))
        s = {"ids": torch.randint(2, VOCAB, (n,), generator=rng).tolist()}
        if config.model_type == "bert":
            s["type_ids"] = [0] * (n // 2) + [1] * (n - n // 2)
        out.append(s)
    return out


def batch_of(sequences, config):
    longest = max(len(s["ids"]) for s in sequences)
    pad = lambda values, fill: torch.tensor([v + [fill] * (longest - len(v)) for v in values])
    ids = [s["ids"] for s in sequences]
    batch = {"input_ids": pad(ids, config.pad_token_id), "attention_mask": pad([[1] * len(i) for i in ids], 0)}
    if config.model_type == "bert":
        batch["token_type_ids"] = pad([s["type_ids"] for s in sequences], 0)
    return batch


def logits_of(model, sequences):
    with torch.no_grad():
        return model(**batch_of(sequences, model.config)).logits.tolist()


def train(model, sequences, rng):
    config = model.config
    no_decay = lambda n: n.endswith("bias") or "norm" in n.lower()
    params = dict(model.named_parameters())
    optimizer = torch.optim.AdamW([{"params": [p for n, p in params.items() if not no_decay(n)], "weight_decay": HYPER["weight_decay"]},
                                   {"params": [p for n, p in params.items() if no_decay(n)], "weight_decay": 0.0}],
                                  lr=HYPER["learning_rate"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["epsilon"])
    schedule = get_linear_schedule_with_warmup(optimizer, HYPER["warmup_steps"], HYPER["total_steps"])
    steps, smoothed = [], None
    for _ in range(HYPER["total_steps"]):
        batch, labels = sequences_of(rng, 4, config), torch.randint(0, len(LABELS), (4,), generator=rng)
        logits = model(**batch_of(batch, config)).logits
        if smoothed is None:
            smoothed = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1).item()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((p.grad.double()**2).sum() for p in params.values() if p.grad is not None)).item()
        steps.append({"learning_rate": schedule.get_last_lr()[0], "sequences": batch, "labels": labels.tolist(), "loss": loss.item(), "grad_norm": norm})
        optimizer.step()
        schedule.step()
    return {"hyper_parameters": HYPER, "smoothing": 0.1, "smoothed_loss": smoothed, "steps": steps, "final_logits": logits_of(model, sequences)}


def write(folder, golden):
    with open(os.path.join(folder, "golden.json"), "w") as f:
        json.dump(golden, f, indent=None, separators=(",", ":"))
        f.write("\n")


def main(out):
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for seed, family in enumerate(["bert", "roberta", "distilbert"]):
        rng = torch.Generator().manual_seed(100 + seed)
        model, folder = make_model(config_of(family), seed), os.path.join(out, family)
        model.save_pretrained(folder)
        sequences = sequences_of(rng, 7, model.config)
        write(folder, {"logits": {"sequences": sequences, "logits": logits_of(model, sequences)}, "training": train(model, sequences, rng)})
    for seed, (family, name, dtype, act) in enumerate([("bert", "bert_bf16", torch.bfloat16, "gelu_new"), ("roberta", "roberta_f16", torch.float16, "gelu")]):
        rng = torch.Generator().manual_seed(200 + seed)
        folder = os.path.join(out, name)
        make_model(config_of(family, act), 50 + seed).to(dtype).save_pretrained(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        sequences = sequences_of(rng, 7, model.config)
        write(folder, {"logits": {"sequences": sequences, "logits": logits_of(model, sequences)}})

    folder = os.path.join(out, "bert_sharded")
    model = AutoModelForSequenceClassification.from_pretrained(os.path.join(out, "bert")).bert
    model.pooler = None
    model.save_pretrained(folder, max_shard_size="60KB")
    index_path = os.path.join(folder, "model.safetensors.index.json")
    with open(index_path) as f:
        index = json.load(f)
    shards = sorted(set(index["weight_map"].values()))
    assert len(shards) == 2, shards
    old = lambda n: n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    first = os.path.join(folder, shards[0])
    save_file({old(n): t for n, t in load_file(first).items()}, first, metadata={"format": "pt"})
    index["weight_map"] = {old(n) if f == shards[0] else n: f for n, f in index["weight_map"].items()}
    with open(index_path, "w") as f:
        json.dump(index, f, indent=2, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
