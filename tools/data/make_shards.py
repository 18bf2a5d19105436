# Shards of pre-training data as others' scripts write them, for tests/data/shard_foreign_test.cpp. Needs the PyPI package h5py (3.16 made
# the committed ones).   make_shards.py OUT_DIR
# NAME.hdf5 are variants of one content, rows.json. bad_*.hdf5 must be refused.
import json
import os
import random
import sys

import h5py
import numpy as np

S, P = 16, 4


def rows(count=9):
    draw = random.Random(5)
    for r in range(count):
        length = draw.choice([5, 9, 12, S])
        ids = [101] + [draw.randrange(1000, 30522) for _ in range(length - 2)] + [102]
        border = draw.randrange(1, length - 1)
        positions = sorted(draw.sample(range(1, length - 1), min(P, max(1, length // 5))))
        labels = [ids[p] for p in positions]
        for p in positions:
            ids[p] = 103
        yield {"ids": ids, "segments": [0] * border + [1] * (length - border), "positions": positions, "labels": labels, "next": r % 2}


def tables(content):
    pad = lambda row, n: row + [0] * (n - len(row))
    return {
        "input_ids": np.array([pad(r["ids"], S) for r in content]),
        "input_mask": np.array([pad([1] * len(r["ids"]), S) for r in content]),
        "segment_ids": np.array([pad(r["segments"], S) for r in content]),
        "masked_lm_positions": np.array([pad(r["positions"], P) for r in content]),
        "masked_lm_ids": np.array([pad(r["labels"], P) for r in content]),
        "next_sentence_labels": np.array([r["next"] for r in content]),
    }


NVIDIA = {"input_ids": "i4", "input_mask": "i1", "segment_ids": "i1", "masked_lm_positions": "i4", "masked_lm_ids": "i4",
          "next_sentence_labels": "i1"}


def same(dtype):
    return {name: dtype for name in NVIDIA}


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    content = list(rows())
    with open(os.path.join(out, "rows.json"), "w") as file:
        json.dump(content, file, separators=(",", ":"))
    variants = {
        # create_pretraining_data.py of NVIDIA's DeepLearningExamples
        "nvidia": (NVIDIA, {"compression": "gzip"}, {}),
        # the data set that AWS's Neuron tutorial downloads
        "aws": ({**NVIDIA, "masked_lm_positions": "i2", "input_ids": "i2"}, {"compression": "gzip", "compression_opts": 9}, {}),
        "plain_i4": (same("i4"), {}, {}),
        "i2": (same("i2"), {"compression": "gzip", "shuffle": True}, {}),
        "i8": (same("i8"), {"chunks": True, "fletcher32": True}, {}),
        "u2": (same("u2"), {}, {}),
        "big_endian": (same(">i4"), {"compression": "gzip"}, {}),
        "v110": (NVIDIA, {"compression": "gzip"}, {"libver": ("earliest", "v110")}),
        "bad_newer": (NVIDIA, {"compression": "gzip"}, {"libver": "latest"}),  # HDF5 2.0
        "earliest": (NVIDIA, {}, {"libver": "earliest"}),
        "bool_mask": ({**NVIDIA, "input_mask": "?"}, {}, {}),
        "bad_float_ids": ({**NVIDIA, "input_ids": "f4"}, {}, {}),
        "bad_lzf": (NVIDIA, {"compression": "lzf"}, {}),
    }
    for name, (types, options, file_options) in variants.items():
        with h5py.File(os.path.join(out, name + ".hdf5"), "w", **file_options) as file:
            for table, values in tables(content).items():
                file.create_dataset(table, data=values.astype(types[table]), **options)
    with h5py.File(os.path.join(out, "no_next.hdf5"), "w") as file:
        for table, values in tables(content).items():
            if table != "next_sentence_labels":
                file.create_dataset(table, data=values.astype("i4"))
    with h5py.File(os.path.join(out, "bad_missing.hdf5"), "w") as file:
        file.create_dataset("input_ids", data=tables(content)["input_ids"])
    with h5py.File(os.path.join(out, "bad_rows.hdf5"), "w") as file:
        for table, values in tables(content).items():
            file.create_dataset(table, data=(values[:-1] if table == "segment_ids" else values).astype("i4"))


main()
