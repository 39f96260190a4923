"""`attune bench reduce` on hosts with slow networks between them: measure.py --sums."""

import json

import launch
import network

COLUMNS = {"fixed over MPI": ("MPI", "fixed"), "MPI_Iallreduce": ("MPI", "mpi_allreduce"),
           "reduce+gather": ("MPI", "mpi_reduce_scatter_allgather"), "fixed over TCP": ("TCP", "fixed")}


def measured(options, folder, ranks, rate, delay):
    """{(network, way, bytes): the row of the program} and the network's statistics, over MPI and then over TCP."""
    command = [options.attune, "bench", "reduce", "--json", "--seconds", str(options.seconds)]
    with network.Network(ranks, rate, delay) as net:
        printed = [launch.over_mpi([*command, "--mpi"], net, folder, options.timeout),
                   launch.over_tcp(command, net, options.timeout)]
        statistics = {"packets": net.packets, "dropped": net.dropped}
    rows = {}
    for output in printed:
        result = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        for row in result["results"]:
            rows[result["network"], row["way"], row["bytes"]] = row
    return rows, statistics


def table(options, folder, networks, results):
    """Prints a line for each setting and size: medians over the rounds of the slowest rank's milliseconds."""
    print(f"{'ranks':>5} {'Mbit/s':>7} {'delay ms':>8} {'KiB':>6} " + " ".join(f"{name:>14}" for name in COLUMNS)
          + f" {'TCP MB/s':>9}")
    for ranks in options.ranks or [2, 4, 8]:
        for rate, delay in networks:
            rows, statistics = measured(options, folder, ranks, rate, delay)
            for size in sorted({size for _, _, size in rows}):
                cells = [rows[*key, size]["median_ms"] for key in COLUMNS.values()]
                print(f"{ranks:5} {rate / 1e6:7.0f} {delay * 1e3:8.1f} {size >> 10:6} "
                      + " ".join(f"{cell:14.2f}" for cell in cells)
                      + f" {rows['TCP', 'fixed', size]['mb_per_s']:9.1f}", flush=True)
            if results:
                for (name, _, _), row in rows.items():
                    results.write(json.dumps({"ranks": ranks, "bits_per_second": rate, "delay": delay, "network": name,
                                              **row, **statistics}) + "\n")
                results.flush()
