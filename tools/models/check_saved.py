#!/usr/bin/env python3
"""Does Transformers read what muster wrote, and does it say the same?

usage: check_saved.py SAVED [ORIGINAL]        (needs torch, transformers)

Loads the folder SAVED with AutoModelForSequenceClassification: every weight must be found and none left over. With ORIGINAL, the folder that
SAVED was made from without training, the logits of a few random batches are compared; exits 1 when they differ by more than 1e-4.
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import AutoModelForSequenceClassification


def load(folder):
    model, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    wrong = {k: sorted(v) for k, v in info.items() if v}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    return model.eval()


def main(saved, original=None):
    model = load(saved)
    config = model.config
    print(f"{saved}: {type(model).__name__}, {sum(p.numel() for p in model.parameters())} parameters, labels {config.id2label}, {config.label2id}")
    if original is None:
        return
    other, worst = load(original), 0.0
    rng = torch.Generator().manual_seed(1)
    for length in [1, 7, 32]:
        ids = torch.randint(2, config.vocab_size, (3, length), generator=rng)
        with torch.no_grad():
            worst = max(worst, (model(ids).logits - other(ids).logits).abs().max().item())
    print(f"largest difference of a logit: {worst:g}")
    if not worst <= 1e-4:
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
