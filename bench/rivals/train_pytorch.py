"""PyTorch's fine-tuning rate: forward, backward, clipping, fused AdamW; tokenising is part of the loop as it is of muster's run."""
import argparse, json, time
import torch
from texts import batches, build

p = argparse.ArgumentParser()
for flag in ("--model", "--data", "--kind", "--dtype"):
    p.add_argument(flag, required=True)
p.add_argument("--threads", type=int, required=True)
p.add_argument("--seconds", type=float, required=True)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)
model = build(a.kind, a.model).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
stream = batches(a.model, a.data)


def step():
    batch = next(stream)
    labels = torch.randint(0, 3, (32,))
    ids = {k: v for k, v in batch.items() if a.kind == "minilm" or k != "token_type_ids"}
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        loss = model(**ids, labels=labels).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


for _ in range(3):
    step()
steps, start = 0, time.perf_counter()
while time.perf_counter() - start < a.seconds or steps < 4:
    step()
    steps += 1
print(json.dumps({"seq_per_s": 32 * steps / (time.perf_counter() - start)}))
