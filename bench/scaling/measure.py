#!/usr/bin/env python3
"""Steps of `attune train` on 1, 2 and 4 hosts with slow networks between them, beside what the model says.

    sudo python3 bench/scaling/measure.py            # about five minutes; --quick for one
    sudo python3 bench/scaling/measure.py --sums     # sums alone (attune bench reduce), on 2, 4 and 8 hosts

Hosts are network namespaces of this machine (network.py), one rank and one thread each: more ranks than cores share the
cores, so that each setting is compared with as many ranks on an unlimited network. Open MPI talks TCP, nothing else.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import tempfile

import launch
import model
import network
import sums

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_ranks(options, folder, ranks, rate, delay, shard):
    """The log's lines and the network's statistics."""
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    train = [options.attune, "train", str(folder / "run.toml"), "--out", str(out), "--mpi",
             "--set", f"train.shard_optimizer={'true' if shard else 'false'}"]
    for assignment in options.set:
        train += ["--set", assignment]
    with network.Network(ranks, rate, delay) as net:
        launch.over_mpi(train, net, folder, options.timeout)
        statistics_of_network = {"packets": net.packets, "dropped": net.dropped}
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return lines, statistics_of_network


def write_run(options, folder):
    words = [f"w{i % 97}{'abcdefgh'[i * i % 8]}" for i in range(200000)]
    (folder / "text.txt").write_text("\n".join(" ".join(words[i:i + 20]) for i in range(0, len(words), 20)))
    (folder / "run.toml").write_text(f"""
[model]
architecture = "decoder_lm"
d_model = {options.d_model}
heads = 4
layers = {options.layers}
d_ff = {4 * options.d_model}
context_length = 64
dropout = 0.0
[data]
train_files = ["{folder}/text.txt"]
tokenizer_type = "characters"
[schedule]
kind = "constant"
[train]
steps = {options.steps}
batch_tokens = {options.batch_tokens}
log_every = 1
checkpoint_every = 100000
""")


def summary(lines, ranks):
    """Medians over the steps but the first two."""
    steps = [line for line in lines if "loss" in line][2:]
    median = lambda key: statistics.median(line[key] for line in steps)
    if ranks == 1:
        return {"step": statistics.median(steps[i]["time"] - steps[i - 1]["time"] for i in range(1, len(steps)))}
    return {"step": median("step_seconds"), "bytes": median("bytes_sent"),
            "communication": median("communication_seconds"), "hidden": median("communication_hidden")}


def steps(options, folder, settings, results):
    """Trains in each setting and prints the measured step beside that of the model."""
    write_run(options, folder)
    print(f"{'ranks':>5} {'optimizer':>9} {'Mbit/s':>7} {'delay ms':>8} {'step s':>7} {'model s':>7} {'sent MB':>8} "
          f"{'moving s':>8} {'hidden':>6}")
    for ranks in options.ranks or [2, 4]:
        free = None
        for rate, delay in settings:
            for shard in (False, True) if (rate, delay) in ((0, 0), (2e8, 0)) else (False,):
                lines, net = run_ranks(options, folder, ranks, rate, delay, shard)
                found = summary(lines, ranks)
                free = free or found
                # Compute time: what the step takes without limits, less what it waited there.
                compute = free["step"] - free["communication"] * (1 - free["hidden"])
                run = model.Run(parameters=found["bytes"] * ranks / (8 * (ranks - 1)), compute=compute)
                link = model.Link(bandwidth=rate / 8 if rate else 1e12, delay=delay)
                predicted = model.step(run, link, ranks)[0]
                print(f"{ranks:5} {'sharded' if shard else 'whole':>9} {rate / 1e6:7.0f} {delay * 1e3:8.1f} "
                      f"{found['step']:7.3f} {predicted:7.3f} {found['bytes'] / 1e6:8.2f} "
                      f"{found['communication']:8.3f} {found['hidden']:6.0%}", flush=True)
                if results:
                    results.write(json.dumps({"ranks": ranks, "sharded": shard, "bits_per_second": rate,
                                              "delay": delay, "model": predicted, **found, **net}) + "\n")
                    results.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attune", default=str(ROOT / "build/release/attune"))
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--ranks", type=int, nargs="+", help="default: 2 4, with --sums 2 4 8")
    parser.add_argument("--set", action="append", default=[], help="for attune train: train.deterministic_reduction=false")
    parser.add_argument("--sums", action="store_true", help="no training, but attune bench reduce over MPI and TCP")
    parser.add_argument("--seconds", type=float, default=10, help="of --sums: for a size, after its third round")
    parser.add_argument("--timeout", type=int, help="seconds for one setting; default: 180, with --sums 1800")
    parser.add_argument("--quick", action="store_true", help="fewer settings")
    parser.add_argument("--networks", nargs="+", metavar="MBIT:MS",
                        help="settings: bandwidth and delay one way, 0 for no limit (1000:0 0:10)")
    parser.add_argument("--json", help="file for the results, an object a line")
    options = parser.parse_args()
    settings = [(0, 0), (1e9, 0), (2e8, 0), (0, 0.001), (0, 0.01), (1e9, 0.001)]
    if options.quick:
        settings = [(0, 0), (2e8, 0), (0, 0.01)]
    if options.networks:
        settings = [(float(rate) * 1e6, float(delay) / 1e3)
                    for rate, delay in (setting.split(":") for setting in options.networks)]
    options.timeout = options.timeout or (1800 if options.sums else 180)
    results = open(options.json, "w") if options.json else None
    with tempfile.TemporaryDirectory(prefix="attune-") as name:
        if options.sums:
            sums.table(options, pathlib.Path(name), settings, results)
        else:
            steps(options, pathlib.Path(name), settings, results)


if __name__ == "__main__":
    main()
