"""PyTorch's pre-training rate on shards: BertForPreTraining (BERT-base), rows padded to 128 as the shards have them, fused AdamW, clipping;
reading and masks to labels are part of the loop."""
import argparse, glob, json, time
import h5py
import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining

p = argparse.ArgumentParser()
for flag in ("--shards", "--dtype", "--mode"):
    p.add_argument(flag, required=True)
p.add_argument("--threads", type=int, required=True)
p.add_argument("--seconds", type=float, required=True)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)
model = BertForPreTraining(BertConfig(vocab_size=30522)).train()
forward = torch.compile(model) if a.mode == "compile" else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def batches(size=8):
    while True:
        for path in sorted(glob.glob(a.shards + "/*training*.hdf5")):
            with h5py.File(path, "r") as file:
                tables = {name: file[name][:] for name in file}
            order = np.random.permutation(len(tables["input_ids"]))
            for begin in range(0, len(order) - size + 1, size):
                rows = {name: torch.from_numpy(values[order[begin:begin + size]].astype(np.int64)) for name, values in tables.items()}
                labels = torch.full_like(rows["input_ids"], -100)
                at, words = rows["masked_lm_positions"], rows["masked_lm_ids"]
                line = torch.arange(size)[:, None].expand_as(at)
                labels[line[at > 0], at[at > 0]] = words[at > 0]
                yield {"input_ids": rows["input_ids"], "attention_mask": rows["input_mask"], "token_type_ids": rows["segment_ids"], "labels": labels,
                       "next_sentence_label": rows["next_sentence_labels"]}


stream = batches()


def step():
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = forward(**next(stream)).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


for _ in range(2):
    step()
steps, start = 0, time.perf_counter()
while time.perf_counter() - start < a.seconds or steps < 3:
    step()
    steps += 1
print(json.dumps({"seq_per_s": 8 * steps / (time.perf_counter() - start)}))
