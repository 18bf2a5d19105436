"""Labelling rate of PyTorch, ONNX Runtime and OpenVINO on batches of 32 texts padded to their longest, tokenised beforehand; or the median
time of one text of --latency_tokens tokens."""
import argparse, itertools, json, os, statistics, tempfile, time
import torch
from texts import batches, build

p = argparse.ArgumentParser()
for flag in ("--model", "--data", "--kind", "--engine"):
    p.add_argument(flag, required=True)
p.add_argument("--threads", type=int, required=True)
p.add_argument("--seconds", type=float, required=True)
p.add_argument("--latency_tokens", type=int)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)
model = build(a.kind, a.model).eval()


class Logits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).logits


if a.engine == "torch":
    wrapped = Logits()

    def run(ids, mask):
        with torch.inference_mode():
            return wrapped(ids, mask).numpy()
else:
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    example = (torch.randint(5, 100, (2, 16)), torch.ones(2, 16, dtype=torch.long))
    torch.onnx.export(Logits(), example, path, input_names=["ids", "mask"], output_names=["logits"], dynamo=False, opset_version=17,
                      dynamic_axes={"ids": {0: "b", 1: "s"}, "mask": {0: "b", 1: "s"}, "logits": {0: "b"}})
    if a.engine == "onnxruntime":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = a.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        run = lambda ids, mask: session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0]
    else:
        import openvino
        compiled = openvino.Core().compile_model(path, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": a.threads})
        request = compiled.create_infer_request()
        run = lambda ids, mask: request.infer({0: ids.numpy(), 1: mask.numpy()})[0]

if a.latency_tokens:
    one = (torch.randint(5, 100, (1, a.latency_tokens)), torch.ones(1, a.latency_tokens, dtype=torch.long))
    times = []
    for i in range(320):
        start = time.perf_counter()
        run(*one)
        times.append(time.perf_counter() - start)
    print(json.dumps({"ms": 1e3 * statistics.median(times[20:])}))
    raise SystemExit
prepared = [(b["input_ids"], b["attention_mask"]) for b in itertools.islice(batches(a.model, a.data), 88)]
for ids, mask in prepared[:4]:
    run(ids, mask)
rows, start = 0, time.perf_counter()
for ids, mask in itertools.cycle(prepared):
    run(ids, mask)
    rows += len(ids)
    if time.perf_counter() - start >= a.seconds:
        break
print(json.dumps({"seq_per_s": rows / (time.perf_counter() - start)}))
