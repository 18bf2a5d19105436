#!/usr/bin/env python3
"""Makes tests/data/models/{bert_pretraining,roberta_mlm,distilbert_mlm}: tiny models with random weights, as Transformers writes them, and
what PyTorch computes with them.

usage: make_mlm_goldens.py OUTPUT_FOLDER        (needs torch, transformers, safetensors)

golden.json:
  sequences    [{ids, type_ids?}]
  masked       [[sequence, position, label]]; `logits` one row for each; `next_labels`, `next_logits` (bert_pretraining) one for each sequence
  loss, mlm_loss, nsp_loss   means over masked positions and sequences
  steps        twenty steps of AdamW from the stored weights on four alternating batches, no dropout, no clipping: [loss]; lamb_steps: the
               same by LAMB as this script has it (You et al. 2020; see `lamb`)
  batches      [{sequences, masked, next_labels}]
"""
import copy
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import (BertConfig, BertForPreTraining, DistilBertConfig, DistilBertForMaskedLM, RobertaConfig, RobertaForMaskedLM)

VOCAB = 120
HYPER = {"learning_rate": 2e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "weight_decay": 0.01}


def make(name):
    sizes = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    torch.manual_seed(len(name))
    if name == "bert_pretraining":
        model = BertForPreTraining(BertConfig(max_position_embeddings=40, **sizes))
    elif name == "roberta_mlm":
        model = RobertaForMaskedLM(RobertaConfig(max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, **sizes))
    else:
        model = DistilBertForMaskedLM(DistilBertConfig(vocab_size=VOCAB, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=40))
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.normal_(0, 0.2 if p.dim() > 1 else 0.1)
            if "norm" in key.lower() and key.endswith("weight"):
                p.add_(1)
    return model.float().eval()


def batch_of(rng, model, count):
    pairs = isinstance(model, BertForPreTraining)
    sequences, masked, following = [], [], []
    for s in range(count):
        n = int(torch.randint(4, 20, (1,), generator=rng))
        one = {"ids": torch.randint(5, VOCAB, (n,), generator=rng).tolist()}
        if pairs:
            one["type_ids"] = [0] * (n // 2) + [1] * (n - n // 2)
        for p in sorted(torch.randperm(n - 1, generator=rng)[: max(1, n // 6)].tolist()):
            masked.append([s, p + 1, one["ids"][p + 1]])
            one["ids"][p + 1] = 4
        sequences.append(one)
        following.append(int(torch.randint(0, 2, (1,), generator=rng)))
    return {"sequences": sequences, "masked": masked, "next_labels": following}


def run(model, batch):
    longest = max(len(s["ids"]) for s in batch["sequences"])
    pad = lambda values, fill: torch.tensor([v + [fill] * (longest - len(v)) for v in values])
    ids = [s["ids"] for s in batch["sequences"]]
    inputs = {"input_ids": pad(ids, model.config.pad_token_id or 0), "attention_mask": pad([[1] * len(i) for i in ids], 0)}
    labels = torch.full(inputs["input_ids"].shape, -100)
    for s, p, label in batch["masked"]:
        labels[s, p] = label
    if isinstance(model, BertForPreTraining):
        inputs["token_type_ids"] = pad([s["type_ids"] for s in batch["sequences"]], 0)
        out = model(**inputs)
        words, pairs = out.prediction_logits, out.seq_relationship_logits
        nsp = torch.nn.functional.cross_entropy(pairs, torch.tensor(batch["next_labels"]))
    else:
        words, pairs, nsp = model(**inputs).logits, None, torch.tensor(0.0)
    mlm = torch.nn.functional.cross_entropy(words.reshape(-1, VOCAB), labels.reshape(-1))
    rows = torch.stack([words[s, p] for s, p, _ in batch["masked"]])
    return rows, pairs, mlm, nsp


def decays(name):
    return not (name.endswith("bias") or "norm" in name.lower())


def lamb(model, moments, step):
    """You et al. 2020, algorithm 2, as NVIDIA's FusedLAMB and AWS's script run it: bias correction; decay inside the update; the trust
    ratio |w| / |update| for tensors with decay (1 where a norm is 0), 1 for the others; gradients clipped to a global norm of 1."""
    h = HYPER
    norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters() if p.grad is not None))
    clip = max(1.0, norm.item())
    with torch.no_grad():
        for name, p in model.named_parameters():
            m, v = moments.setdefault(name, (torch.zeros_like(p), torch.zeros_like(p)))
            g = p.grad / clip
            m.mul_(h["beta1"]).add_(g, alpha=1 - h["beta1"])
            v.mul_(h["beta2"]).addcmul_(g, g, value=1 - h["beta2"])
            update = (m / (1 - h["beta1"] ** step)) / ((v / (1 - h["beta2"] ** step)).sqrt() + h["epsilon"])
            ratio = 1.0
            if decays(name):
                update = update + h["weight_decay"] * p
                w, u = p.norm().item(), update.norm().item()
                ratio = w / u if w > 0 and u > 0 else 1.0
            p.sub_(update, alpha=h["learning_rate"] * ratio)


def steps_of(model, batches, optimizer):
    model, losses, moments = copy.deepcopy(model), [], {}
    model.tie_weights()
    groups = [{"params": [p for n, p in model.named_parameters() if decays(n)], "weight_decay": HYPER["weight_decay"]},
              {"params": [p for n, p in model.named_parameters() if not decays(n)], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=HYPER["learning_rate"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["epsilon"])
    for step in range(1, 21):
        _, _, mlm, nsp = run(model, batches[(step - 1) % len(batches)])
        model.zero_grad()
        (mlm + nsp).backward()
        losses.append((mlm + nsp).item())
        adamw.step() if optimizer == "adamw" else lamb(model, moments, step)
    return losses


def main(folder):
    for name in ["bert_pretraining", "roberta_mlm", "distilbert_mlm"]:
        model, rng = make(name), torch.Generator().manual_seed(3)
        path = os.path.join(folder, name)
        model.save_pretrained(path, safe_serialization=True)
        generation = os.path.join(path, "generation_config.json")
        if os.path.exists(generation):
            os.remove(generation)
        batch = batch_of(rng, model, 5)
        batches = [batch_of(rng, model, 6) for _ in range(4)]
        with torch.no_grad():
            rows, pairs, mlm, nsp = run(model, batch)
        golden = dict(batch, logits=rows.tolist(), next_logits=None if pairs is None else pairs.tolist(), loss=(mlm + nsp).item(), mlm_loss=mlm.item(),
                      nsp_loss=nsp.item(), hyper_parameters=HYPER, batches=batches, steps=steps_of(model, batches, "adamw"),
                      lamb_steps=steps_of(model, batches, "lamb"))
        with open(os.path.join(path, "golden.json"), "w") as f:
            json.dump(golden, f)


main(*sys.argv[1:])
