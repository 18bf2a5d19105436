"""Golden values for tests/train, from the libraries whose behaviour the trainer follows.

    python tools/train/make_goldens.py tests/data/train

Needs torch, transformers, scikit-learn and tensorboard. Writes:
  schedules.json    learning rates of transformers.get_scheduler, every step of some runs
  adamw.json        ten steps of torch.optim.AdamW with clip_grad_norm_ on two small tensors
  metrics.json      scikit-learn's metrics of random labels and predictions
  events.json       serialised Event messages and TFRecord frames, in hexadecimal, as tensorboard's own writer makes them
"""

import json
import os
import struct
import sys

import sklearn.metrics as skm
import torch
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.plugins.hparams import api_pb2, metadata as hparams_metadata, plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from transformers import get_scheduler


def schedules():
    cases = []
    for name, total, warmup in [("linear", 20, 0), ("linear", 25, 4), ("cosine", 20, 0), ("cosine", 30, 7), ("constant", 6, 0),
                                ("constant_with_warmup", 12, 5), ("linear", 3, 5), ("linear", 1, 0)]:
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.AdamW([parameter], lr=3e-4)
        schedule = get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total)
        rates = []
        for _ in range(total):
            rates.append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
        cases.append({"type": name, "total": total, "warmup": warmup, "learning_rate": 3e-4, "rates": rates})
    return cases


def adamw():
    torch.manual_seed(5)
    shapes = {"layer.weight": (5, 7), "layer.bias": (7,)}
    values = {n: torch.randn(s) for n, s in shapes.items()}
    start = {n: v.flatten().tolist() for n, v in values.items()}
    parameters = {n: torch.nn.Parameter(v.clone()) for n, v in values.items()}
    optimizer = torch.optim.AdamW([{"params": [parameters["layer.weight"]], "weight_decay": 0.1}, {"params": [parameters["layer.bias"]], "weight_decay": 0.0}],
                                  betas=(0.85, 0.99), eps=1e-6)
    steps = []
    for step in range(10):
        gradients = {n: torch.randn(s) * (0.05 if step % 3 == 0 else 2.0) for n, s in shapes.items()}
        for n, p in parameters.items():
            p.grad = gradients[n].clone()
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0).item()
        rate = 0.01 / (step + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        steps.append({"learning_rate": rate, "norm": norm, "gradients": {n: g.flatten().tolist() for n, g in gradients.items()},
                      "parameters": {n: p.detach().flatten().tolist() for n, p in parameters.items()}})
    return {"shapes": shapes, "start": start, "beta1": 0.85, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.1, "max_grad_norm": 1.0, "steps": steps}


def metrics():
    generator = torch.Generator().manual_seed(11)
    cases = []
    # The last two: a class that nobody predicts, and one that occurs nowhere.
    for classes, rows, used, predicted in [(2, 50, 2, 2), (3, 200, 3, 3), (4, 60, 4, 3), (5, 40, 4, 4)]:
        labels = torch.randint(0, used, (rows,), generator=generator)
        noise = torch.randint(0, predicted, (rows,), generator=generator)
        keep = torch.rand(rows, generator=generator) < 0.6
        predictions = torch.where(keep & (labels < predicted), labels, noise)
        y, p = labels.tolist(), predictions.tolist()
        each = skm.precision_recall_fscore_support(y, p, labels=range(classes), zero_division=0)
        cases.append({"classes": classes, "labels": y, "predictions": p, "accuracy": skm.accuracy_score(y, p),
                      "f1_macro": skm.f1_score(y, p, average="macro", zero_division=0),
                      "f1_weighted": skm.f1_score(y, p, average="weighted", zero_division=0),
                      "precision_macro": skm.precision_score(y, p, average="macro", zero_division=0),
                      "recall_macro": skm.recall_score(y, p, average="macro", zero_division=0),
                      "precision": each[0].tolist(), "recall": each[1].tolist(), "f1": each[2].tolist(), "support": each[3].tolist(),
                      "confusion": skm.confusion_matrix(y, p, labels=range(classes)).tolist()})
    return cases


class Collect:
    def __init__(self):
        self.bytes = b""

    def write(self, data):
        self.bytes += data


def hparams_event(time, tag, data):
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="hparams", content=data.SerializeToString(deterministic=True))
    return event_pb2.Event(wall_time=time, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(
        tag=tag, tensor=hparams_metadata.NULL_TENSOR, metadata=summary_pb2.SummaryMetadata(plugin_data=plugin))]))


def events():
    version = event_pb2.Event(wall_time=1700000000.25, file_version="brain.Event:2")
    scalar = event_pb2.Event(wall_time=1700000001.5, step=300, summary=summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag="train/loss", simple_value=0.625)]))
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[b"| a | b |"],
                                    tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)]))
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
    text = event_pb2.Event(wall_time=1700000002.0, step=7, summary=summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag="args", tensor=tensor, metadata=metadata)]))
    out = {}
    info = plugin_data_pb2.SessionStartInfo(start_time_secs=1700000003.0)
    info.hparams["adam_beta1"].number_value, info.hparams["bf16"].bool_value, info.hparams["optim"].string_value = 0.9, True, "lamb"
    ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=1700000004.0)
    start = hparams_event(1700000003.0, hparams_metadata.SESSION_START_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_start_info=info))
    end = hparams_event(1700000004.0, hparams_metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=ended))
    for name, event in [("version", version), ("scalar", scalar), ("text", text), ("hparams", start), ("hparams_end", end)]:
        frame, data = Collect(), event.SerializeToString(deterministic=True)
        RecordWriter(frame).write(data)
        out[name] = {"event": data.hex(), "frame": frame.bytes.hex()}
    assert struct.unpack("<Q", bytes.fromhex(out["scalar"]["frame"])[:8])[0] * 2 == len(out["scalar"]["event"])
    return out


def main(out):
    for name, value in [("schedules", schedules()), ("adamw", adamw()), ("metrics", metrics()), ("events", events())]:
        with open(os.path.join(out, name + ".json"), "w") as f:
            json.dump(value, f, separators=(",", ":"))
            f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
