"""Writes tests/data/autodiff/encoder.json: loss and gradients, by PyTorch in f64, of the encoder that tests/autodiff/encoder.cpp builds.

Run from the repository's root with PyTorch installed: python3 tools/autodiff/make_goldens.py
"""
import json

import torch
import torch.nn.functional as F

V, P, H, HEADS, I, LAYERS, C = 11, 6, 8, 2, 12, 2, 3
IDS = [[3, 7, 7, 1], [10], [0, 3, 5]]
LABELS = [2, -100, 0]


def parameters():
    """Shapes as Linear and Embedding store them; values of three decimals, so that the file stays small and exact."""
    shapes = {"words": [V, H], "places": [P, H], "embedding_norm.weight": [H], "embedding_norm.bias": [H]}
    for n in range(LAYERS):
        for name, out, size in (("qkv", 3 * H, H), ("out", H, H), ("up", I, H), ("down", H, I)):
            shapes[f"{n}.{name}.weight"], shapes[f"{n}.{name}.bias"] = [out, size], [out]
        for name in ("attention_norm", "output_norm"):
            shapes[f"{n}.{name}.weight"] = shapes[f"{n}.{name}.bias"] = [H]
    for name, out in (("pooler", H), ("classifier", C)):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = [out, H], [out]
    random = torch.Generator().manual_seed(1)
    return {n: (torch.randn(s, generator=random, dtype=torch.float64) * 0.5).mul(1000).round().div(1000).requires_grad_() for n, s in shapes.items()}


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def norm(p, name, x):
    return F.layer_norm(x, (H,), p[name + ".weight"], p[name + ".bias"], 1e-5)


def sequence_logits(p, ids):
    x = norm(p, "embedding_norm", p["words"][ids] + p["places"][: len(ids)])
    for n in range(LAYERS):
        q, k, v = (t.view(len(ids), HEADS, -1).transpose(0, 1) for t in linear(p, f"{n}.qkv", x).split(H, dim=1))
        context = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(len(ids), H)
        x = norm(p, f"{n}.attention_norm", x + linear(p, f"{n}.out", context))
        x = norm(p, f"{n}.output_norm", x + linear(p, f"{n}.down", F.gelu(linear(p, f"{n}.up", x))))
    return linear(p, "classifier", torch.tanh(linear(p, "pooler", x[0])))


def main():
    p = parameters()
    logits = torch.stack([sequence_logits(p, torch.tensor(ids)) for ids in IDS])
    loss = F.cross_entropy(logits, torch.tensor(LABELS), ignore_index=-100, label_smoothing=0.1, reduction="sum")
    loss.backward()
    golden = {
        "loss": loss.item(),
        "parameters": {n: t.flatten().tolist() for n, t in p.items()},
        "gradients": {n: [float(f"{g:.11g}") for g in t.grad.flatten().tolist()] for n, t in p.items()},
    }
    with open("tests/data/autodiff/encoder.json", "w") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")


main()
