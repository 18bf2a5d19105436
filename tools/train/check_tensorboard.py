"""Reads the event files of a run with TensorBoard's own reader and compares them with metrics.jsonl.

    python tools/train/check_tensorboard.py OUTPUT_DIR

Prints the tags and how many values agree; fails on a difference, a missing value or a broken frame.
"""

import json
import math
import os
import sys

import numpy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2


def tag_of(name):
    for group in ("eval", "test"):
        if name.startswith(group + "_"):
            return group + "/" + name[len(group) + 1:]
    perf = name.endswith("_ms") or name in ("samples_per_second", "tokens_per_second", "tflops", "mfu", "cpu_percent", "memory_mb")
    return ("perf/" if perf else "train/") + name


def main(folder):
    events = EventAccumulator(os.path.join(folder, "runs"), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    found = {(tag, e.step): e.value for tag in events.Tags()["scalars"] for e in events.Scalars(tag)}
    compared = 0
    with open(os.path.join(folder, "metrics.jsonl")) as f:
        for line in f:
            record = json.loads(line)
            for name, value in record.items():
                if name == "step" or value is None:
                    continue
                key = (tag_of(name), record["step"])
                if key not in found:
                    sys.exit(f"{key} is not in the event files")
                if not math.isclose(found[key], float(numpy.float32(value)), rel_tol=0, abs_tol=0):
                    sys.exit(f"{key}: {found[key]} in the event files, {value} in metrics.jsonl")
                compared += 1
    plugin = events.SummaryMetadata("_hparams_/session_start_info").plugin_data
    start = plugin_data_pb2.HParamsPluginData.FromString(plugin.content).session_start_info
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    with open(os.path.join(folder, "train_results.json")) as f:
        arguments = json.load(f)["arguments"]
    for name, value in values.items():
        if str(arguments[name]) not in (str(value), str(value).lower()) and float(arguments[name]) != value:
            sys.exit(f"hyper-parameter {name}: {value} in the event files, {arguments[name]} in train_results.json")
    print("hyper-parameters:", len(values))
    print("scalars:", ", ".join(sorted(events.Tags()["scalars"])))
    print("texts:", ", ".join(sorted(events.Tags()["tensors"])))
    print(f"{compared} values agree")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
