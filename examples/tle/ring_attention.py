"""Attention over several devices, o = softmax(q kᵀ / sqrt(D)) v, each of which has a part of the sequence.

Queries stay where they are. Some programs of each device copy the keys and values of the others into its memory, one device's after the other's, each
beginning with its next one, so that nobody is asked by two, or they store its own at the others (``push``); meanwhile the programs attend to what is there, the
device's own first, with running maxima and sums. A signal for each head and device says that its keys and values are there. Run by itself the program checks it
on a simulated mesh.
"""

from gemm_across_devices import is_last

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def next_tile(counts_ptr):
    """The tiles of the launch are given out one by one: who has had to wait, or to copy, takes fewer."""
    return tl.atomic_add(counts_ptr, 1, sem="relaxed")


@triton.jit
def bring(k_ptr, v_ptr, copier, heads, size, mesh: tl.constexpr, COPIERS: tl.constexpr, SIZE: tl.constexpr):
    """Copies this program's share of each head of the other devices; ``size`` elements a head and device."""
    me = tle.shard_id(mesh, 0)
    for at in range(heads, mesh.size * heads):
        owner = (me + at // heads) % mesh.size
        chunk = owner * heads + at % heads
        begin = chunk.to(tl.int64) * size
        k, v = tle.remote(k_ptr + begin, owner, mesh), tle.remote(v_ptr + begin, owner, mesh)
        for first in range(copier * SIZE, size, COPIERS * SIZE):
            place = first + tl.arange(0, SIZE)
            keys, values = tl.load(k + place, mask=place < size), tl.load(v + place, mask=place < size)
            tl.store(k_ptr + begin + place, keys, mask=place < size)
            tl.store(v_ptr + begin + place, values, mask=place < size)
        tle.signal(None, me, chunk)


@triton.jit
def send(k_ptr, v_ptr, copier, heads, size, mesh: tl.constexpr, COPIERS: tl.constexpr, SIZE: tl.constexpr):
    """The other way round: stores this program's share of each head of its own device at the others, in the order in which they want it."""
    me = tle.shard_id(mesh, 0)
    for at in range(heads, mesh.size * heads):
        other = (me + mesh.size - at // heads) % mesh.size
        chunk = me * heads + at % heads
        begin = chunk.to(tl.int64) * size
        k, v = tle.remote(k_ptr + begin, other, mesh), tle.remote(v_ptr + begin, other, mesh)
        for first in range(copier * SIZE, size, COPIERS * SIZE):
            place = first + tl.arange(0, SIZE)
            keys = tl.load(k_ptr + begin + place, mask=place < size)
            values = tl.load(v_ptr + begin + place, mask=place < size)
            tl.store(k + place, keys, mask=place < size)
            tl.store(v + place, values, mask=place < size)
        tle.signal(None, other, chunk)


@triton.jit
def attend(q, k_ptr, v_ptr, acc, largest, total, own, scale, N: tl.constexpr, D: tl.constexpr):
    """Adds what ``own`` keys and values give to the sums."""
    dims = tl.arange(0, D)
    for first in range(0, own, N):
        key = first + tl.arange(0, N)
        k = tl.load(k_ptr + key[:, None] * D + dims[None, :], mask=key[:, None] < own, other=0)
        s = tl.where(key[None, :] < own, tl.dot(q, k.T) * scale, float("-inf"))
        before, largest = largest, tl.maximum(largest, tl.max(s, 1))
        weights, shrink = tl.exp2(s - largest[:, None]), tl.exp2(before - largest)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(v_ptr + key[:, None] * D + dims[None, :], mask=key[:, None] < own, other=0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
    return acc, largest, total


@triton.jit
def ring_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, counts_ptr, heads, own, scale,
    mesh: tl.constexpr, PUSH: tl.constexpr, COPIERS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """``own`` queries and keys of each head are on each device; at ``counts_ptr`` are the next tile, and how many programs are done."""
    me = tle.shard_id(mesh, 0)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    tle.distributed_barrier(mesh)
    if tl.program_id(0) < COPIERS:
        if PUSH:
            send(k_ptr, v_ptr, tl.program_id(0), heads, own * D, mesh, COPIERS, SIZE)
        else:
            bring(k_ptr, v_ptr, tl.program_id(0), heads, own * D, mesh, COPIERS, SIZE)
    blocks = tl.cdiv(own, M)
    tile = next_tile(counts_ptr)
    while tile < heads * blocks:
        head, query = tile // blocks, tile % blocks * M + tl.arange(0, M)[:, None]
        at = (head.to(tl.int64) * own + query) * D + tl.arange(0, D)[None, :]
        q = tl.load(q_ptr + at, mask=query < own, other=0)
        acc, total = tl.zeros([M, D], tl.float32), tl.zeros([M], tl.float32)
        largest = tl.full([M], float("-inf"), tl.float32)
        for step in range(mesh.size):
            chunk = (me + step) % mesh.size * heads + head
            if step > 0:
                tle.signal_wait(None, chunk, target=COPIERS)
            begin = chunk.to(tl.int64) * own * D
            acc, largest, total = attend(
                q, k_ptr + begin, v_ptr + begin, acc, largest, total, own, scale, N, D
            )
        tl.store(o_ptr + at, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=query < own)
        tile = next_tile(counts_ptr)
    if is_last(counts_ptr):
        # It leaves the signals as they were.
        for chunk in range(mesh.size * heads):
            if chunk // heads != me:
                tle.signal(None, me, chunk, -COPIERS, op="add")
    tle.distributed_barrier(mesh)


def ring_attention(
    q, k, v, o, counts, mesh, block=(128, 64), programs=132, copiers=16, push=False, **options
):
    """Each device's part of ``o``, over the keys and values of all.

    :param q: (heads, own, D), this device's queries; ``o`` likewise.
    :param k: (devices, heads, own, D), in symmetric memory; this device's are where they belong in it, and the others' come there. ``v`` likewise.
    :param counts: two 32-bit integers, zero before the first launch.
    :param copiers: how many programs copy before they compute.
    :param push: whether they store at the others what is the device's own, or fetch what is the others'.
    """
    heads, own, d = q.shape
    m, n = block
    programs = min(programs, heads * triton.cdiv(own, m))
    ring_attention_kernel[(programs,)](
        q,
        k,
        v,
        o,
        counts,
        heads,
        own,
        d**-0.5,
        mesh,
        push,
        min(copiers, programs),
        m,
        n,
        d,
        min(own * d, 1 << 13),
        **options,
    )


def main():
    import numpy as np

    from tilewright import distributed
    from tilewright.testing import simulated_mesh

    heads, own, d = 2, 40, 16
    for devices in (3, 2):
        mesh = tle.device_mesh({"device": devices})
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((devices, heads, own, d)).astype(np.float16) for _ in range(3))
        mine = [np.arange(devices)[:, None, None, None] == rank for rank in range(devices)]
        whole = [x.astype(np.float32).swapaxes(0, 1).reshape(heads, -1, d) for x in (q, k, v)]
        s = whole[0] @ whole[1].swapaxes(1, 2) * d**-0.5
        weights = np.exp(s - s.max(2, keepdims=True))
        want = (weights / weights.sum(2, keepdims=True)) @ whole[2]
        with simulated_mesh(1, devices):
            queries, counts = distributed.from_parts(q), distributed.zeros(2, np.int32)
            for push in (False, True):
                keys, values = (
                    distributed.from_parts([np.where(m, x, np.float16(0)) for m in mine]) for x in (k, v)
                )
                o = distributed.zeros((heads, own, d), np.float16)
                how = dict(block=(32, 16), programs=3, copiers=2, push=push)
                ring_attention(queries, keys, values, o, counts, mesh, **how)
                got = o.numpy().astype(np.float32).swapaxes(0, 1).reshape(heads, -1, d)
                np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)
        print(f"{devices} devices, {devices * own} tokens")


if __name__ == "__main__":
    main()
