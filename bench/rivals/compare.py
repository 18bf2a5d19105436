"""Runs muster and its rivals in turns and writes a table of ratios. Started by bench/compare, which sets the environment up.

Every figure is the median over the rounds of one invocation of this script; a round runs each contestant once, one after the other, each in
a process of its own with the same number of threads. Nothing is taken from an earlier run."""
import argparse, json, os, platform, re, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--muster", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--work", default="minilm-train,roberta-train,bert-mlm,minilm-infer,roberta-infer,minilm-latency,roberta-latency,roberta-memory")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--accuracy_data", help="folder in the TweetEval layout for the work 'accuracy' (default: the demo's)")
    p.add_argument("--output", default="docs/benchmarks.md")
    return p.parse_args()


def run(command, threads):
    """The last line the command prints, as JSON, with the most memory it held (resident, MB)."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="false")
    environment.pop("OPENBLAS_CORETYPE", None)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, env=environment, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if child.returncode != 0:
            sys.exit(f"compare: {' '.join(command)} failed:\n{err.read()[-2000:]}")
        return {**json.loads(out.read().strip().splitlines()[-1]), "peak_mb": usage.ru_maxrss / 1024}


def rival(script, *flags):
    return lambda a: run([sys.executable, os.path.join(HERE, script), "--model", a.model, "--data", a.data, "--threads", str(a.threads),
                          "--seconds", str(a.seconds), *flags], a.threads)


def muster_train(kind, *flags):
    def one(a):
        with tempfile.TemporaryDirectory() as out:
            start = ["--model", a.model] if kind == "minilm" else ["--config_name", "roberta-base", "--tokenizer", a.model]
            command = [a.muster, "train", *start, "--data", a.data, "--output_dir", out + "/o", "--per_device_train_batch_size", "32", "--save_strategy", "no",
                       "--threads", str(a.threads), "--learning_rate", "2e-5", "--log_level", "warning", "--json", *flags]
            probe = run([*command, "--max_steps", "4"], a.threads)
            rate = probe["train_steps_per_second"]
            steps = max(8, int(rate * a.seconds))
            command[command.index(out + "/o")] = out + "/p"
            result = run([*command, "--max_steps", str(steps)], a.threads)
            return {"seq_per_s": result["train_samples_per_second"], "peak_mb": result["peak_mb"]}
    return one


def muster_infer(kind, *flags):
    def one(a):
        with tempfile.TemporaryDirectory() as out:
            start = ["--model", a.model] if kind == "minilm" else ["--config_name", "roberta-base", "--tokenizer", a.model]
            run([a.muster, "train", *start, "--data", a.data, "--output_dir", out + "/o", "--max_steps", "1", "--save_strategy", "no", "--log_level", "warning", "--json"], a.threads)
            result = run([a.muster, "eval", "--model", out + "/o", "--data", a.data, "--split", "train", "--per_device_eval_batch_size", "32", "--threads", str(a.threads), "--json", *flags], a.threads)
            return {"seq_per_s": result["rows"] / result["seconds"]}
    return one


def muster_latency(kind):
    def one(a):
        start = ["--model", a.model] if kind == "minilm" else ["--config_name", "roberta-base"]
        return run([a.muster, "explain", *start, "--tokens", str(LATENCY_TOKENS), "--sequences", "1", "--runs", "300", "--threads", str(a.threads), "--json"], a.threads)
    return one


def shards(a):
    """Sequences of 128 tokens from the demo's tweets, in groups of 40 that stand for documents; made once."""
    folder = os.path.join(tempfile.gettempdir(), f"muster-compare-{os.getpid()}")
    if not os.path.isdir(folder + "/shards"):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(a.data, "train_text.txt"), encoding="utf-8") as source, open(folder + "/text", "w", encoding="utf-8") as text:
            for i, line in enumerate(source):
                text.write(("\n" if i % 40 == 39 else "") + line)
        subprocess.run([a.muster, "data", "prepare", "--input", folder + "/text", "--sentences", "lines", "--tokenizer", a.model, "--output", folder + "/shards",
                        "--num_shards", "2", "--dupe_factor", "10", "--test_fraction", "0.05", "--log_level", "warning"], check=True, stdout=subprocess.DEVNULL)
    return folder + "/shards"


def muster_mlm(a):
    with tempfile.TemporaryDirectory() as out:
        command = [a.muster, "train", "--task", "masked_lm", "--config_name", "bert-base", "--tokenizer", a.model, "--data", shards(a), "--output_dir", out + "/o",
                   "--per_device_train_batch_size", "8", "--save_strategy", "no", "--threads", str(a.threads), "--log_level", "warning", "--json"]
        rate = run([*command, "--max_steps", "2"], a.threads)["train_steps_per_second"]
        command[command.index(out + "/o")] = out + "/p"
        return {"seq_per_s": run([*command, "--max_steps", str(max(4, int(rate * a.seconds)))], a.threads)["train_samples_per_second"]}


def torch_mlm(dtype, mode):
    return lambda a: run([sys.executable, os.path.join(HERE, "train_mlm_pytorch.py"), "--shards", shards(a), "--dtype", dtype, "--mode", mode, "--threads",
                          str(a.threads), "--seconds", str(a.seconds)], a.threads)


def muster_accuracy(a, flag, seed):
    with tempfile.TemporaryDirectory() as out:
        run([a.muster, "train", "--model", a.model, "--data", a.accuracy_data, "--output_dir", out + "/o", "--num_train_epochs", "4", "--learning_rate", "1e-4",
             "--per_device_train_batch_size", "32", "--warmup_ratio", "0.06", "--weight_decay", "0.01", "--max_seq_length", "128", "--save_strategy", "no",
             "--seed", str(seed), "--threads", str(a.threads), "--log_level", "warning", "--json", flag], a.threads)
        return run([a.muster, "eval", "--model", out + "/o", "--data", a.accuracy_data, "--split", "test", "--threads", str(a.threads), "--json", flag], a.threads)


def torch_accuracy(a, dtype, seed):
    return run([sys.executable, os.path.join(HERE, "accuracy_pytorch.py"), "--model", a.model, "--data", a.accuracy_data, "--dtype", dtype, "--threads",
                str(a.threads), "--seed", str(seed)], a.threads)


def accuracy(a):
    """MiniLM, 4 epochs, batch 32, lr 1e-4, 6 % warm-up: accuracy and macro-F1 of three seeds each."""
    contestants = [("muster f32", lambda s: muster_accuracy(a, "--fp32", s)), ("muster bf16", lambda s: muster_accuracy(a, "--bf16", s)),
                   ("PyTorch f32", lambda s: torch_accuracy(a, "f32", s)), ("PyTorch bf16 autocast", lambda s: torch_accuracy(a, "bf16", s))]
    rows = []
    for who, measure in contestants:
        scores = [measure(seed) for seed in (1, 2, 3)]
        rows.append({"engine": who, "accuracy": [s["accuracy"] for s in scores], "f1_macro": [s["f1_macro"] for s in scores]})
        print(f"accuracy {who}: {rows[-1]}", file=sys.stderr, flush=True)
    return rows


LATENCY_TOKENS = 26  # of a tweet, on average


def latency(kind):
    flags = lambda engine: ("--kind", kind, "--engine", engine, "--latency_tokens", str(LATENCY_TOKENS))
    return [("muster (auto)", muster_latency(kind)), ("PyTorch f32", rival("infer_rivals.py", *flags("torch"))),
            ("ONNX Runtime f32", rival("infer_rivals.py", *flags("onnxruntime"))), ("OpenVINO", rival("infer_rivals.py", *flags("openvino")))]


# What is measured: the key in a contestant's answer, its unit, how a figure is written, whether more is better.
RATE = ("seq_per_s", "sequences/s", "{:.1f}", True)
LATENCY = ("ms", "ms, median", "{:.2f}", False)
MEMORY = ("peak_mb", "peak resident MB", "{:.0f}", False)

WORK = {
    "minilm-train": ("MiniLM 6x384, fine-tuning, 32 tweets a batch", RATE, [
        ("muster (auto)", muster_train("minilm")),
        ("PyTorch f32", rival("train_pytorch.py", "--kind", "minilm", "--dtype", "f32")),
        ("PyTorch bf16 autocast", rival("train_pytorch.py", "--kind", "minilm", "--dtype", "bf16"))]),
    "roberta-train": ("RoBERTa-base shape, fine-tuning, 32 tweets a batch", RATE, [
        ("muster (auto)", muster_train("roberta")),
        ("PyTorch f32", rival("train_pytorch.py", "--kind", "roberta", "--dtype", "f32")),
        ("PyTorch bf16 autocast", rival("train_pytorch.py", "--kind", "roberta", "--dtype", "bf16"))]),
    "bert-mlm": ("BERT-base, masked words and next sentence, 8 sequences of 128 a batch, from shards", RATE, [
        ("muster (auto)", muster_mlm),
        ("PyTorch f32", torch_mlm("f32", "eager")),
        ("PyTorch f32 compiled", torch_mlm("f32", "compile")),
        ("PyTorch bf16 autocast compiled", torch_mlm("bf16", "compile"))]),
    "minilm-infer": ("MiniLM 6x384, labelling, batches of 32 tweets", RATE, [
        ("muster (auto)", muster_infer("minilm")),
        ("PyTorch f32", rival("infer_rivals.py", "--kind", "minilm", "--engine", "torch")),
        ("ONNX Runtime f32", rival("infer_rivals.py", "--kind", "minilm", "--engine", "onnxruntime")),
        ("OpenVINO", rival("infer_rivals.py", "--kind", "minilm", "--engine", "openvino"))]),
    "roberta-infer": ("RoBERTa-base shape, labelling, batches of 32 tweets", RATE, [
        ("muster (auto)", muster_infer("roberta")),
        ("PyTorch f32", rival("infer_rivals.py", "--kind", "roberta", "--engine", "torch")),
        ("ONNX Runtime f32", rival("infer_rivals.py", "--kind", "roberta", "--engine", "onnxruntime")),
        ("OpenVINO", rival("infer_rivals.py", "--kind", "roberta", "--engine", "openvino"))]),
    "minilm-latency": ("MiniLM 6x384, one text of 26 tokens", LATENCY, latency("minilm")),
    "roberta-latency": ("RoBERTa-base shape, one text of 26 tokens", LATENCY, latency("roberta")),
    "roberta-memory": ("RoBERTa-base shape, fine-tuning, 32 tweets a batch", MEMORY, [
        ("muster (auto)", muster_train("roberta")),
        ("PyTorch f32", rival("train_pytorch.py", "--kind", "roberta", "--dtype", "f32")),
        ("PyTorch bf16 autocast", rival("train_pytorch.py", "--kind", "roberta", "--dtype", "bf16"))]),
}


def main():
    a = arguments()
    a.accuracy_data = a.accuracy_data or a.data
    names = [name for name in a.work.split(",") if name != "accuracy"]
    for name in names:
        if name not in WORK:
            sys.exit(f"compare: unknown work '{name}': have {', '.join(WORK)}")
    doctor = json.loads(subprocess.run([a.muster, "doctor", "--json"], capture_output=True, text=True, check=True).stdout)
    has_bf16 = "bf16" in doctor["features"]
    results = []
    for name in names:
        title, (key, unit, form, more_is_better), contestants = WORK[name]
        if not has_bf16:
            contestants = [(who, measure) for who, measure in contestants if "bf16" not in who]
        figures = {who: [] for who, _ in contestants}
        for r in range(a.rounds):
            for who, measure in contestants:
                figures[who].append(measure(a)[key])
                print(f"{name} round {r + 1}/{a.rounds} {who}: {form.format(figures[who][-1])} {unit}", file=sys.stderr, flush=True)
        medians = {who: statistics.median(v) for who, v in figures.items()}
        ours = medians[contestants[0][0]]
        best = (max if more_is_better else min)(v for who, v in medians.items() if who != contestants[0][0])
        results.append({"work": name, "title": title, "unit": unit, "more_is_better": more_is_better, "medians": medians, "all": figures, "ratio_to_best_rival": ours / best})
    lines = ["# Benchmarks", "", "Written by `bench/compare`: muster and its rivals in turns on one machine, "
             + (f"medians of {a.rounds} rounds" if a.rounds > 1 else "one round") + f", {a.threads} threads.", "", f"Machine: {doctor['processor']}, {doctor['cores']} cores, {doctor['features']}; muster {doctor['muster']} "
             f"at {doctor['isa']}, precision {doctor['precision']}. {time.strftime('%Y-%m-%d')}.", "", "The texts are the demo's tweets (scripts/fetch-demo), padded to the longest of the batch for the "
             "rivals, packed for muster. Rivals: PyTorch 2.15.0, Transformers 5.24.0, ONNX Runtime 1.32.0, OpenVINO 2026.4.1."
             + ("" if has_bf16 else " bf16 is left out: this machine has no instructions for it."), ""]
    for result in results:
        _, unit, form, more_is_better = WORK[result["work"]][1]
        lines += [f"## {result['title']}", "", f"| engine | {unit} | muster {'is' if more_is_better else 'takes'} |", "|---|---|---|"]
        ours = next(iter(result["medians"].values()))
        for who, figure in result["medians"].items():
            ratio = "" if who.startswith("muster") else f"{ours / figure:.2f}x {'as fast' if more_is_better else 'of it'}"
            lines.append(f"| {who} | {form.format(figure)} | {ratio} |")
        lines.append("")
    scores = accuracy(a) if "accuracy" in a.work.split(",") else []
    if scores:
        lines += [f"## Accuracy on {os.path.basename(os.path.normpath(a.accuracy_data))}", "", "MiniLM, 4 epochs, batch 32, lr 1e-4, 6 % warm-up, seeds 1, 2, 3.", "",
                  "| engine | accuracy | macro-F1 | mean accuracy | mean macro-F1 |", "|---|---|---|---|---|"]
        for row in scores:
            each = lambda key: " ".join(f"{v:.3f}" for v in row[key])
            lines.append(f"| {row['engine']} | {each('accuracy')} | {each('f1_macro')} | {statistics.mean(row['accuracy']):.3f} | {statistics.mean(row['f1_macro']):.3f} |")
        lines.append("")
    with open(a.output + ".part", "w") as f:
        f.write("\n".join(lines))
    os.replace(a.output + ".part", a.output)
    with open(os.path.splitext(a.output)[0] + ".json", "w") as f:
        json.dump({"machine": doctor, "threads": a.threads, "rounds": a.rounds, "results": results, "accuracy": scores}, f, indent=1)
    print("\n".join(lines))


main()
