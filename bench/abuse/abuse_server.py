#!/usr/bin/env python3
"""Attacks `attune serve`: is it there afterwards, with the same answers, and with nothing left over?

    abuse_server.py en-de=runs/demo/model lm=runs/lm/model --requests 100000 --disconnects 10000

Starts the server itself, with models of any kind, and has to have one that translates. In turn: mutated requests of every
route of /openapi.json, slow clients, streams whose clients go at random, SIGKILL and restart under load, a model folder
replaced under load. Ends with 1, and what was wrong, unless all known requests had their answers all the time, no answer
was a 500 or no HTTP, and at the end nothing runs, no slot of a cache is used, and there are no more descriptors than at
the start.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attacks import Expected, Findings, ReplacedModel, disconnects, kills, mutated, replaced, slow
from mutations import Mutator, routes_of
from victim import Victim, known_requests, names_by_kind

PARTS = ("mutated", "slow", "disconnects", "kills", "replaced")


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", metavar="NAME=FOLDER")
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    p.add_argument("--other", type=Path, help="another model that translates likewise; otherwise attune quantize makes it")
    p.add_argument("--requests", type=int, default=10000, help="mutated ones")
    p.add_argument("--slow", type=int, default=300, help="slow and half-open connections")
    p.add_argument("--disconnects", type=int, default=1000)
    p.add_argument("--kills", type=int, default=3)
    p.add_argument("--reloads", type=int, default=10)
    p.add_argument("--at-once", type=int, default=64, help="connections of an attack")
    p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--patience", type=float, default=1.0, help="a factor for all waiting, for sanitizers")
    p.add_argument("--keep", type=Path, help="folder for the server's log and the bytes of findings")
    o = p.parse_args()
    o.parts = o.parts.split(",")
    if not set(o.parts) <= set(PARTS):
        p.error(f"--parts: expected some of {','.join(PARTS)}")
    if any("=" not in model for model in o.models):
        p.error("models: expected NAME=FOLDER")
    return o


def replaced_model(o: argparse.Namespace, models: dict[str, Path], name: str, folder: Path) -> ReplacedModel:
    first, other = models[name], o.other
    if other is None:
        other = folder / "other"
        subprocess.run([o.attune, "quantize", str(first), "--out", str(other)], check=True, capture_output=True)
    return ReplacedModel(name, folder / "link", first, other, folder / "broken")


async def attack(o: argparse.Namespace, victim: Victim, model: ReplacedModel | None, findings: Findings) -> None:
    kinds = names_by_kind(victim)
    expected = Expected(victim, known_requests(kinds), findings)
    document = json.loads(victim.get("/openapi.json")[1])
    mutator = Mutator(document, routes_of(document, kinds), o.seed)
    descriptors, begin = victim.descriptors(), time.monotonic()

    def told(part: str, more: str = "") -> None:
        state = f"{victim.memory_mb():.0f} MB, {victim.descriptors()} descriptors" if victim.alive() else "DEAD"
        print(f"{time.monotonic() - begin:7.1f} s  {part:12} {state}, {expected.right} known answers right  {more}", flush=True)

    told("start", f"models {', '.join(kinds.values())}; seed {o.seed}")
    for part in (p for p in PARTS if p in o.parts and victim.alive()):
        more = ""
        if part == "mutated":
            statuses = await mutated(victim, mutator, o.requests, o.at_once, expected, findings)
            more = ", ".join(f"{status or 'closed'}: {count}" for status, count in sorted(statuses.items()))
        elif part == "slow":
            await slow(victim, o.slow, o.seed, expected, findings)
        elif part == "disconnects":
            await disconnects(victim, kinds, o.disconnects, o.at_once, o.seed, findings)
        elif part == "kills":
            taken = await kills(victim, o.kills, expected, findings)
            more = "ready again after " + ", ".join(f"{seconds:.2f}" for seconds in taken) + " s"
        elif model is not None:
            await replaced(victim, model, o.reloads, expected, findings)
        told(part, more)
    if victim.alive():
        await at_the_end(victim, expected, descriptors, findings)
    else:
        findings.add(f"the server has ended with {victim.process.returncode}: {victim.log_lines()[-3:]}")


async def at_the_end(victim: Victim, expected: Expected, descriptors: int, findings: Findings) -> None:
    for name in expected.known:
        await expected.check(name)
    if busy := victim.what_does_not_rest(10):
        findings.add(f"at the end: {busy}")
    end = time.monotonic() + 10 * victim.patience  # idle connections end by themselves
    while victim.descriptors() > descriptors and time.monotonic() < end:
        await asyncio.sleep(0.1)
    if victim.descriptors() > descriptors:
        findings.add(f"{victim.descriptors()} descriptors at the end, {descriptors} at the start")
    if status := victim.stop():
        findings.add(f"exit status {status} after SIGTERM: {victim.log_lines()[-3:]}")
    if failed := [line for line in victim.log_lines() if '"status":500' in line]:
        findings.add(f"{len(failed)} answers with 500 in the log: {failed[:3]}")


def run(o: argparse.Namespace, folder: Path) -> list[str]:
    models = {name: Path(path).resolve() for name, path in (m.split("=", 1) for m in o.models)}
    findings = Findings(o.keep)
    victim = Victim(o.attune, models, folder, o.patience)
    model = None
    if "replaced" in o.parts:
        translates = next(n for n, p in models.items() if "encoder_decoder" in (p / "config.json").read_text(encoding="utf-8"))
        model = replaced_model(o, models, translates, folder)
        victim.models[translates] = model.link
    victim.start()
    try:
        asyncio.run(attack(o, victim, model, findings))
    finally:
        if victim.alive():
            victim.kill()
        if o.keep is not None:
            (o.keep / "log").write_bytes(victim.log.read_bytes())
    return findings.list


def main() -> int:
    o = parse_options()
    if o.keep is not None:
        o.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = run(o, Path(folder))
    print(f"{len(found)} findings" if found else "nothing was wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
