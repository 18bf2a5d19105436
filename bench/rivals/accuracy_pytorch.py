"""Fine-tunes MiniLM by PyTorch with the settings of bench/compare's accuracy work and scores it on the test split."""
import argparse, json
import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from transformers import AutoTokenizer, BertForSequenceClassification, get_linear_schedule_with_warmup

p = argparse.ArgumentParser()
for flag in ("--model", "--data", "--dtype"):
    p.add_argument(flag, required=True)
p.add_argument("--threads", type=int, required=True)
p.add_argument("--seed", type=int, required=True)
p.add_argument("--epochs", type=int, default=4)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(a.seed)
rng = np.random.default_rng(a.seed)
lines = lambda name: open(f"{a.data}/{name}", encoding="utf-8", newline="").read().split("\n")[:-1]
texts, labels = lines("train_text.txt"), [int(x) for x in lines("train_labels.txt")]
tokenizer = AutoTokenizer.from_pretrained(a.model)
model = BertForSequenceClassification.from_pretrained(a.model, num_labels=max(labels) + 1)
plain = lambda name: "bias" in name or "LayerNorm.weight" in name
groups = [{"params": [v for n, v in model.named_parameters() if plain(n) == bare], "weight_decay": 0.0 if bare else 0.01} for bare in (False, True)]
optimizer = torch.optim.AdamW(groups, lr=1e-4, fused=True)
steps = a.epochs * ((len(texts) + 31) // 32)
schedule = get_linear_schedule_with_warmup(optimizer, int(0.06 * steps), steps)
encode = lambda batch: tokenizer(batch, padding=True, truncation=True, max_length=128, return_tensors="pt")
narrow = lambda: torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16")
model.train()
for _ in range(a.epochs):
    order = rng.permutation(len(texts))
    for i in range(0, len(texts), 32):
        rows = order[i:i + 32]
        with narrow():
            loss = model(**encode([texts[k] for k in rows]), labels=torch.tensor([labels[k] for k in rows])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
model.eval()
held_out, truth, predicted = lines("test_text.txt"), [int(x) for x in lines("test_labels.txt")], []
with torch.inference_mode(), narrow():
    for i in range(0, len(held_out), 64):
        predicted += model(**encode(held_out[i:i + 64])).logits.argmax(-1).tolist()
print(json.dumps({"accuracy": accuracy_score(truth, predicted), "f1_macro": f1_score(truth, predicted, average="macro")}))
