"""What moving a tensor between the ranks of a mesh costs, by a model, and which algorithm is picked by it.

``n`` ranks are ``nodes`` of ``devices`` each, ``S`` the bytes of the whole tensor (of partial sums: of what each rank has). A transfer takes the time of its
meetings, one latency each, and that of the bytes that each rank reads from others and has written to it by others, which come over the links of its
node and over the network one beside the other:

================  ===============  ===========================  ===========================  =============
transition        algorithm        read                         written                      latencies
================  ===============  ===========================  ===========================  =============
all-gather        one shot         S (n - 1) / n                                             2
all-gather        ring                                          S (n - 1) / n                n + 1
reduce-scatter    one shot         S (n - 1) / n                                             2
reduce-scatter    ring                                          S (n - 1) / n                2
both              push                                          S (n - 1) / n                2
both              low latency                                   2 S (n - 1) / n              1
all-to-all        one shot         S (n - 1) / n²                                            2
all-to-all        push                                          S (n - 1) / n²               2
all-to-all        low latency                                   2 S (n - 1) / n²             1
all-reduce        one shot         S (n - 1)                                                 2
all-reduce        two shots        S (n - 1) / n                S (n - 1) / n                2
all-reduce        ring                                          2 S (n - 1) / n              2 n - 1
all-reduce        push                                          2 S (n - 1) / n              4
all-reduce        low latency                                   2 S (n - 1)                  1
                  two shots                                     4 S (n - 1) / n              1.2
================  ===============  ===========================  ===========================  =============

Where sums are pushed, two programs a multiprocessor have turns, too, each with a tile of 8 KiB for each member: at least so long it takes as all of them behind the first.
An exchange of words has a latency of its own.

A ring in which sums become split has turns besides, one behind the other: each of :data:`PROGRAMS` programs takes n - 1 for every tile of 8 KiB of its part of a
share.

Where ranks reach their two neighbours alone (``switched=False``), what goes between two others takes as many links as they are apart, n / 4 on the average, in
both directions around; the ring's does not. A node's network connections are shared where ``shared_network`` says so: then what a ring sends from node to node
goes through them once, and what the others send, ``devices`` times.
"""

from __future__ import annotations

import dataclasses as _dataclasses
import math as _math

#: Programs of a grid: the multiprocessors of an H100. How many share the work is known only at the launch.
PROGRAMS = 132

#: Seconds of a turn behind the first in which sums are pushed, as measured on two GPUs, and bytes a second of what is pushed so, as measured on four.
PUSHED = {"reduce-scatter": 10.7e-6, "all-reduce": 15e-6}
PUSHED_SUMS = 305e9

#: Latencies of two exchanges of words, one behind the other, as measured on four GPUs: what a launch costs, which the first one pays, is most of a latency.
TWO_EXCHANGES = 1.2

#: The most other ranks of a node by which links have been measured.
MEASURED = 7

#: Bytes that a program sends on at once where sums become split.
SENT = 8192

#: What moves along an axis, and the algorithms that there are for it.
ALGORITHMS = {
    "all-gather": ("one_shot", "ring", "push", "low_latency"),
    "reduce-scatter": ("one_shot", "ring", "push", "low_latency"),
    "all-to-all": ("one_shot", "push", "low_latency"),
    "all-reduce": ("one_shot", "two_shot", "ring", "push", "low_latency", "low_latency_two_shot"),
}


@_dataclasses.dataclass(frozen=True)
class Links:
    """How ranks reach each other: seconds until all have seen that all have come, less where each waits for one ``neighbour``, and of an ``exchange`` of words with flags; bytes a
    second into a rank that it ``reads`` from one other, or that one other ``writes``, by how much more time each further rank makes of that, and the share of it that ``words`` reach;
    seconds of a ``turn``, in which a program adds to a tile of sums and hands it on. Those of a node as measured on two, four and eight GPUs (docs/performance.md)."""

    latency: float = 3.8e-6
    neighbour: float = 2.8e-6
    exchange: float = 2.8e-6
    reads: float = 335e9
    reads_of_each: float = 0.018
    writes: float = 370e9
    writes_of_each: float = 0.024
    words: float = 0.85
    turn: float = 3e-6
    switched: bool = True
    network_latency: float = 10e-6
    network: float = 45e9
    shared_network: bool = False


def _seconds(links, nodes, devices, read, written):
    """For so many bytes from each other rank."""
    hops = 1 if links.switched else max(1, devices / 4) / (2 if devices > 2 else 1)
    further = min(max(devices - 2, 0), MEASURED - 1)
    of_reads, of_writes = 1 + links.reads_of_each * further, 1 + links.writes_of_each * further
    inside = (devices - 1) * (read * of_reads / links.reads + written * of_writes / links.writes) * hops
    shares = devices if links.shared_network else 1
    return max(inside, (nodes - 1) * devices * (read + written) * shares / links.network)


def _words(links, nodes, devices, sent):
    """For so many bytes to each other rank in words, of which half is flags."""
    inside = _seconds(links, 1, devices, 0, 2 * sent / links.words)
    return max(inside, _seconds(links, nodes, devices, 0, 2 * sent))


def cost(transition, algorithm, nbytes, nodes=1, devices=1, links=None):
    """Seconds that a transition takes by the model above.

    :param transition: a key of :data:`ALGORITHMS`.
    :param algorithm: ``"one_shot"``, ``"two_shot"``, ``"ring"``, ``"push"``, ``"low_latency"`` or ``"low_latency_two_shot"``.
    :param nbytes: bytes of the whole tensor.
    :raises ValueError: the transition has no such algorithm.
    """
    if algorithm not in ALGORITHMS.get(transition, ()):
        raise ValueError(f"{transition!r} has no algorithm {algorithm!r}")
    links = links or Links()
    n = nodes * devices
    if n == 1:
        return 0.0
    latency = links.network_latency if nodes > 1 else links.latency
    if algorithm == "ring":
        latency = links.network_latency if nodes > 1 else links.neighbour
        slowest = min(links.writes, links.network) if nodes > 1 else links.writes
        times = 2 if transition == "all-reduce" else 1
        moved = times * nbytes * (n - 1) / n / slowest
        if transition == "reduce-scatter":
            return 2 * latency + (n - 1) * _math.ceil(nbytes / n / (PROGRAMS * SENT)) * links.turn + moved
        meetings = n + 1 if transition == "all-gather" else 2 * n - 1
        return meetings * latency + moved
    exchange = links.network_latency if nodes > 1 else links.exchange
    if algorithm == "low_latency":
        sent = {"all-reduce": nbytes, "all-to-all": nbytes / n**2}.get(transition, nbytes / n)
        return exchange + _words(links, nodes, devices, sent)
    if algorithm == "low_latency_two_shot":
        return TWO_EXCHANGES * exchange + _words(links, nodes, devices, 2 * nbytes / n)
    if algorithm == "push":
        meetings, times = (4, 2) if transition == "all-reduce" else (2, 1)
        sent = nbytes / n**2 if transition == "all-to-all" else times * nbytes / n
        moved = _seconds(links, nodes, devices, 0, sent)
        if transition in PUSHED:
            turns = _math.ceil(nbytes / n / (2 * PROGRAMS * SENT)) - 1
            moved = max(turns * PUSHED[transition], (n - 1) * sent / PUSHED_SUMS, moved)
        return meetings * latency + moved
    read, written = {
        "all-gather": (nbytes / n, 0),
        "reduce-scatter": (nbytes / n, 0),
        "all-to-all": (nbytes / n**2, 0),
        "all-reduce": (nbytes, 0) if algorithm == "one_shot" else (nbytes / n, nbytes / n),
    }[transition]
    return 2 * latency + _seconds(links, nodes, devices, read, written)


def pick(transition, nbytes, nodes=1, devices=1, links=None):
    """The algorithm of the least :func:`cost`."""
    return min(ALGORITHMS[transition], key=lambda a: cost(transition, a, nbytes, nodes, devices, links))
