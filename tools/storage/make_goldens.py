#!/usr/bin/env python3
"""Golden safetensors files of the reference writer, for tests/storage. Needs: safetensors, torch.

usage: tools/storage/make_goldens.py [tests/data/storage]
"""
import json
import os
import sys

import torch
from safetensors.torch import save_file

out = sys.argv[1] if len(sys.argv) > 1 else "tests/data/storage"
os.makedirs(out, exist_ok=True)


def ramp(n, dtype):
    return ((torch.arange(n, dtype=torch.float32) - n / 2) * 0.37).to(dtype)


mixed = {
    "f32": ramp(6, torch.float32).reshape(2, 3),
    "f64": ramp(3, torch.float64),
    "f16": torch.tensor([0.0, -0.0, 1.5, 65504.0, 6e-8, -2e-5, float("inf"), float("nan")], dtype=torch.float16),
    "bf16": torch.tensor([1.0, -3.140625, 3e38, float("-inf"), 1e-40], dtype=torch.bfloat16),
    "i64": torch.tensor([[-(2**63), 2**63 - 1]], dtype=torch.int64),
    "i32": torch.tensor([-7, 7], dtype=torch.int32),
    "u8": torch.tensor([0, 255, 3], dtype=torch.uint8),
    "flag": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 4),
    "scalar": torch.tensor(2.5),
    "names/with \"quotes\" and é": torch.tensor([1.0]),
    "i8": torch.tensor([-1, 1, 2], dtype=torch.int8),
}
save_file(mixed, f"{out}/mixed.safetensors", metadata={"format": "pt"})
# What muster's writer is compared with byte for byte: no dtype that muster does not write.
save_file({k: v for k, v in mixed.items() if k != "i8"}, f"{out}/written.safetensors", metadata={"format": "pt"})

shards = f"{out}/sharded"
os.makedirs(shards, exist_ok=True)
parts = [{"a.weight": ramp(4, torch.float32), "b.weight": ramp(2, torch.bfloat16)}, {"c.weight": ramp(3, torch.float16)}]
weight_map = {}
for i, part in enumerate(parts):
    name = f"model-{i + 1:05}-of-{len(parts):05}.safetensors"
    save_file(part, f"{shards}/{name}", metadata={"format": "pt"})
    weight_map.update({k: name for k in part})
total = sum(t.numel() * t.element_size() for p in parts for t in p.values())
with open(f"{shards}/model.safetensors.index.json", "w") as f:
    json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, f, indent=2, sort_keys=True)
    f.write("\n")
