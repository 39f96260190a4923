#!/usr/bin/env python3
"""Steps of `attune train` on 1, 2 and 4 hosts with slow networks between them, beside what the model says.

    sudo python3 bench/scaling/measure.py            # about five minutes; --quick for one

Hosts are network namespaces of this machine (network.py), one rank and one thread each: more ranks than cores share the
cores, so that each setting is compared with as many ranks on an unlimited network. Open MPI talks TCP, nothing else.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import model
import network

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = """#!/bin/sh
# mpirun's way to another host: its address, then a command line.
case "$1" in -*) shift;; esac
host=$1; shift
index=$((${host##*.} - 1))
exec ip netns exec "%s-$index" unshare --uts sh -c "hostname attune-$index; $*"
"""


def run_ranks(options, folder, ranks, rate, delay, shard):
    """The log's lines and the network's statistics."""
    agent = folder / "agent"
    agent.write_text(AGENT % network.namespace(0).rsplit("-", 1)[0])
    agent.chmod(0o755)
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    train = [options.attune, "train", str(folder / "run.toml"), "--out", str(out), "--mpi",
             "--set", f"train.shard_optimizer={'true' if shard else 'false'}"]
    with network.Network(ranks, rate, delay) as net:
        hosts = ",".join(f"{network.address(h)}:1" for h in range(ranks))
        subnet = network.PREFIX + "0/24"
        mpirun = ["mpirun", "--allow-run-as-root", "-n", str(ranks), "--host", hosts, "--bind-to", "none",
                  "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                  "--mca", "oob_tcp_if_include", subnet, "--mca", "btl_tcp_if_include", subnet,
                  "-x", "OMP_NUM_THREADS=1"]
        command = network.inside(0, ["unshare", "--uts", "sh", "-c", 'hostname attune-0; exec "$@"', "sh", *mpirun, *train])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True, env={**os.environ, "OMPI_MCA_orte_tmpdir_base": str(folder)})
        try:
            output, _ = process.communicate(timeout=options.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            sys.exit(f"{ranks} ranks, {rate} bit/s, {delay} s: not done in {options.timeout} s")
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {process.returncode}\n{output}")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attune", default=str(ROOT / "build/release/attune"))
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--timeout", type=int, default=180, help="seconds for one setting")
    parser.add_argument("--quick", action="store_true", help="fewer settings")
    parser.add_argument("--json", help="file for the results, an object a line")
    options = parser.parse_args()
    settings = [(0, 0), (1e9, 0), (2e8, 0), (0, 0.001), (0, 0.01), (1e9, 0.001)]
    if options.quick:
        settings = [(0, 0), (2e8, 0), (0, 0.01)]
    results = open(options.json, "w") if options.json else None
    with tempfile.TemporaryDirectory(prefix="attune-") as name:
        folder = pathlib.Path(name)
        write_run(options, folder)
        print(f"{'ranks':>5} {'optimizer':>9} {'Mbit/s':>7} {'delay ms':>8} {'step s':>7} {'model s':>7} {'sent MB':>8} "
              f"{'moving s':>8} {'hidden':>6}")
        for ranks in options.ranks:
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


if __name__ == "__main__":
    main()
