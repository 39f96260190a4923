#!/usr/bin/env python3
"""The cost of a step on N nodes (docs/scaling.md), and its table: python3 bench/scaling/model.py"""

import argparse
import dataclasses
import math


@dataclasses.dataclass
class Run:
    parameters: float            # numbers that are learnt
    compute: float               # seconds of a step's arithmetic on a node, that is of its share of the batch
    backward: float = 2 / 3      # of it, the share in which gradients become complete
    last_bucket: float = None    # bytes that are complete only at the very end; default: a bucket

    def bucket(self):            # bytes
        return min(max(4 * self.parameters / 8, 2**20), 25 * 2**20)


@dataclasses.dataclass
class Link:
    bandwidth: float  # bytes a second, each way at the same time
    delay: float      # seconds from one node to another
    eager: float = 65536  # bytes; of a larger message MPI over TCP asks first and is answered: three delays, not one

    def reduce_seconds(self, size, nodes):
        """All-reduce of `size` bytes."""
        delays = sum(3 if message > self.eager else 1 for message in messages(size, nodes))
        return 2 * (nodes - 1) / nodes * size / self.bandwidth + 2 * delays * self.delay


def messages(size, nodes):
    """Bytes of those of a reduce-scatter or an all-gather, one after the other."""
    if nodes & (nodes - 1) == 0:
        return [size / 2**i for i in range(1, int(math.log2(nodes)) + 1)]
    return [size / nodes] * (nodes - 1)


def bytes_sent(run, nodes):
    return 2 * (nodes - 1) / nodes * 4 * run.parameters


@dataclasses.dataclass
class Gpus:
    """Machines of eight GPUs, each GPU with a network card of its own: sums are formed within a machine first, and each
    GPU then exchanges its eighth with the GPUs of its number elsewhere."""
    inside: Link
    between: Link
    machine: int = 8

    def reduce_seconds(self, size, gpus):
        local, machines = min(gpus, self.machine), math.ceil(gpus / self.machine)
        ring = 2 * (local - 1) / local * size / self.inside.bandwidth + 2 * (local - 1) * self.inside.delay
        if machines == 1:
            return ring
        tree = 2 * math.ceil(math.log2(machines)) * self.between.delay
        return ring + 2 * (machines - 1) / machines * size / local / self.between.bandwidth + tree

    @property
    def delay(self):  # of one number
        return self.between.delay


def step(run, link, nodes):
    """(seconds, of them waiting for communication, seconds of communication)"""
    if nodes == 1:
        return run.compute, 0.0, 0.0
    size = 4 * run.parameters
    buckets = max(1, math.ceil(size / run.bucket()))
    communication = buckets * link.reduce_seconds(size / buckets, nodes)
    last = min(size, run.last_bucket or size / buckets)
    tail = link.reduce_seconds(last, nodes)  # begins when backward ends
    window = run.backward * run.compute * (1 - 1 / buckets)  # between the first bucket's start and backward's end
    exposed = max(tail, communication - window)
    agreement = 2 * math.ceil(math.log2(nodes)) * link.delay  # loss, norm and the request to stop
    return run.compute + exposed + agreement, exposed + agreement, communication


def table(run, link, counts, grows):
    print(f"{'nodes':>6} {'step s':>9} {'waiting s':>10} {'sent GB':>8} {'hidden':>7} {'efficiency':>10}")
    for nodes in counts:
        share = run if grows else dataclasses.replace(run, compute=run.compute / nodes)
        seconds, exposed, communication = step(share, link, nodes)
        hidden = 1 - min(exposed, communication) / communication if communication else 1.0
        print(f"{nodes:6} {seconds:9.3f} {exposed:10.3f} {bytes_sent(run, nodes) / 1e9:8.3f} {hidden:7.0%} "
              f"{share.compute / seconds:10.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=float, default=65e6, help="of the model (default: the paper's base model)")
    parser.add_argument("--tokens", type=float, default=4096, help="that a node computes in a step")
    parser.add_argument("--tokens-per-second", type=float, default=2000, help="of one node alone")
    parser.add_argument("--gigabits", type=float, default=10, help="bandwidth of a node")
    parser.add_argument("--microseconds", type=float, default=50, help="delay between two nodes")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64, 256, 1000, 1024])
    parser.add_argument("--fixed-batch", action="store_true", help="the tokens are those of all nodes together")
    parser.add_argument("--gpus", action="store_true", help="nodes are GPUs, eight in a machine: NVLink, InfiniBand")
    parser.add_argument("--nvlink", type=float, default=450, help="gigabytes a second each way of a GPU")
    parser.add_argument("--nvlink-microseconds", type=float, default=5, help="delay of a hop within a machine")
    options = parser.parse_args()
    run = Run(parameters=options.parameters, compute=options.tokens / options.tokens_per_second)
    link = Link(bandwidth=options.gigabits * 1e9 / 8, delay=options.microseconds * 1e-6)
    if options.gpus:
        link = Gpus(inside=Link(options.nvlink * 1e9, options.nvlink_microseconds * 1e-6), between=link)
    table(run, link, options.nodes, grows=not options.fixed_batch)


if __name__ == "__main__":
    main()
