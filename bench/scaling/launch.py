"""Starts the ranks of a command on the hosts of a Network, a rank on each: over MPI, or over plain TCP."""

import os
import pathlib
import signal
import subprocess
import sys

import network

AGENT = """#!/bin/sh
# mpirun's way to another host: its address, then a command line.
case "$1" in -*) shift;; esac
host=$1; shift
index=$((${host##*.} - 1))
exec ip netns exec "%s-$index" unshare --uts sh -c "hostname attune-$index; $*"
"""


def ended(processes, timeout):
    """The first one's standard output. When one fails, or after `timeout` seconds, ends them all and this program."""
    try:
        outputs = [process.communicate(timeout=timeout) for process in processes]
        failed = [i for i, process in enumerate(processes) if process.returncode != 0]
        if not failed:
            return outputs[0][0]
        reason = f"status {processes[failed[0]].returncode}\n" + "".join(text for i in failed for text in outputs[i])
    except subprocess.TimeoutExpired:
        reason = f"not done in {timeout} s"
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    sys.exit(f"{' '.join(processes[0].args)}: {reason}")


def start(command, environment):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True, env=environment)


def over_mpi(command, net, folder, timeout):
    """What the ranks write to standard output. `folder` is for files of this function and of Open MPI."""
    agent = pathlib.Path(folder) / "agent"
    agent.write_text(AGENT % network.namespace(0).rsplit("-", 1)[0])
    agent.chmod(0o755)
    hosts = ",".join(f"{network.address(h)}:1" for h in range(net.hosts))
    subnet = network.PREFIX + "0/24"
    mpirun = ["mpirun", "--allow-run-as-root", "-n", str(net.hosts), "--host", hosts, "--bind-to", "none",
              "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
              "--mca", "oob_tcp_if_include", subnet, "--mca", "btl_tcp_if_include", subnet, "-x", "OMP_NUM_THREADS=1"]
    named = ["unshare", "--uts", "sh", "-c", 'hostname attune-0; exec "$@"', "sh"]
    environment = {**os.environ, "OMPI_MCA_orte_tmpdir_base": str(folder)}
    return ended([start(network.inside(0, [*named, *mpirun, *command]), environment)], timeout)


def over_tcp(command, net, timeout):
    """What the first rank writes to standard output."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "ATTUNE_", "MASTER_"))}
    environment |= {"OMP_NUM_THREADS": "1", "WORLD_SIZE": str(net.hosts), "MASTER_ADDR": network.address(0)}
    return ended([start(network.inside(rank, command), {**environment, "RANK": str(rank)})
                  for rank in range(net.hosts)], timeout)
