"""Hosts on one machine: network namespaces, joined by a switch of a given bandwidth and delay. Needs root.

Each host has a tun device; this process moves the packets between them. (netem, the kernel's own way to delay packets,
is not in every kernel.) Packets are large, so that few have to be moved.
"""

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time

PREFIX = "10.77.0."
MTU = 16000
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
QUEUE_SECONDS = 0.5  # packets that would wait longer at the sender's link are dropped


def address(host):
    return f"{PREFIX}{host + 1}"


def namespace(host):
    return f"attune{os.getpid()}-{host}"


def inside(host, command):
    return ["ip", "netns", "exec", namespace(host), *command]


def open_tun(host):
    """A tun device that lives in the host's namespace; this process keeps its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{namespace(host)}") as away:
        if libc.setns(away.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"eth0", IFF_TUN | IFF_NO_PI))
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)
    return tun


class Network:
    """with Network(4, rate=1e9, delay=0.001) as network: ... rate in bits a second, delay in seconds one way; 0: none."""

    def __init__(self, hosts, rate=0.0, delay=0.0):
        self.hosts, self.rate, self.delay = hosts, rate, delay
        self.tuns, self.running = [], True
        self.packets = self.dropped = 0

    def __enter__(self):
        try:
            for host in range(self.hosts):
                subprocess.run(["ip", "netns", "add", namespace(host)], check=True)
                self.tuns.append(open_tun(host))
                # A step's pause is no reason to begin slowly again.
                for command in ("sysctl -qw net.ipv4.tcp_slow_start_after_idle=0", "ip link set lo up", f"ip link set eth0 mtu {MTU} txqueuelen 10000 up",
                                f"ip addr add {address(host)}/24 dev eth0"):
                    subprocess.run(inside(host, command.split()), check=True)
        except BaseException:
            self.close()
            raise
        self.thread = threading.Thread(target=self.switch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()
        self.close()

    def close(self):
        for tun in self.tuns:
            os.close(tun)
        for host in range(self.hosts):
            subprocess.run(["ip", "netns", "del", namespace(host)], stderr=subprocess.DEVNULL)

    def switch(self):
        free = [0.0] * self.hosts  # when the link of each sender has sent all it was given
        on_the_way, count = [], 0
        poll = select.poll()
        sender = {}
        for host, tun in enumerate(self.tuns):
            poll.register(tun, select.POLLIN)
            sender[tun] = host
        while self.running:
            now = time.monotonic()
            wait = 0.1 if not on_the_way else max(0.0, min(0.1, on_the_way[0][0] - now))
            for tun, _ in poll.poll(0 if wait < 0.0005 else wait * 1000):
                for _ in range(16):
                    try:
                        packet = os.read(tun, 65536)
                    except BlockingIOError:
                        break
                    now, host = time.monotonic(), sender[tun]
                    start = max(now, free[host])
                    if packet[0] >> 4 != 4 or start - now > QUEUE_SECONDS:
                        self.dropped += packet[0] >> 4 == 4
                        continue
                    free[host] = start + (8 * len(packet) / self.rate if self.rate else 0)
                    to = packet[19] - 1
                    if 0 <= to < self.hosts:
                        count += 1
                        heapq.heappush(on_the_way, (free[host] + self.delay, count, to, packet))
            now = time.monotonic()
            while on_the_way and on_the_way[0][0] <= now:
                _, _, to, packet = heapq.heappop(on_the_way)
                self.packets += 1
                try:
                    os.write(self.tuns[to], packet)
                except OSError:
                    self.dropped += 1
