"""``cp.async``, mbarriers, and bulk copies between global and shared memory, alone and in clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .formats import FLOATS, UINT, generator, operand, width
from .program import THREADS, Exact, N, Program, threadwise

SHARED = ".shared .align 128 .b8 s[{bytes}]; mov.u32 %r50, s; .shared .align 8 .b64 bar; .shared .align 8 .b64 bar2;"
FIRST = "setp.eq.u32 %p10, %tid0, 0;"


def wait(bar: str, parity: int | str, label: str, form: str = "try_wait") -> str:
    """Polls a phase; a phase that never ends traps instead of hanging the GPU."""
    return (
        f"mov.u32 %r60, 0; W{label}: mbarrier.{form}.parity.shared::cta.b64 %p15, [{bar}], {parity}; @%p15 bra D{label};"
        f" add.u32 %r60, %r60, 1; setp.lt.u32 %p14, %r60, 10000000; @%p14 bra W{label}; trap; D{label}:"
    )


def words(name: str, per: int = 1) -> np.ndarray:
    return operand("b32", N * per, 0, generator(name))


def vector(letter: str, n: int) -> str:
    return "{" + ", ".join(f"%{letter}{i if n > 1 else ''}" for i in range(n)) + "}"


def cp_async() -> Iterator[Program]:
    for size, caches in ((4, ("ca",)), (8, ("ca",)), (16, ("ca", "cg"))):
        n = size // 4
        own = f"mad.lo.u32 %r0, %tid0, {size}, %r50; ld.param.u64 %rd0, [in0]; mad.wide.u32 %rd0, %index, {size}, %rd0;"
        # Another thread reads what this one copied.
        read = f"xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, {size}, %r50; ld.shared{f'.v{n}' if n > 1 else ''}.b32 {vector('d', n) if n > 1 else '%d'}, [%r1];"  # fmt: skip
        for cache in caches:
            for label, copy in (
                ("", f"[%r0], [%rd0], {size}"),
                (" of fewer bytes", f"[%r0], [%rd0], {size}, %r2"),
                (" ignoring its source", f"[%r0], [%rd0], {size}, %p0"),
            ):
                for end in ("wait_all", "wait_group", "mbarrier", "mbarrier.noinc"):
                    name = f"cp.async.{cache} {size}{label}, {end}"
                    body = (
                        SHARED.format(bytes=THREADS * size)
                        + f"{FIRST} {own} rem.u32 %r2, %tid0, {size + 1}; and.b32 %r3, %tid0, 1; setp.ne.b32 %p0, %r3, 0; "
                    )
                    if end.startswith("mbarrier"):
                        # Without .noinc the arrival of the copies is one more than the count: each thread arrives itself, too.
                        body += f"@%p10 mbarrier.init.shared::cta.b64 [bar], {THREADS}; bar.sync 0; "
                    body += f"cp.async.{cache}.shared.global {copy}; "
                    if end == "mbarrier":
                        body += (
                            "cp.async.mbarrier.arrive.shared::cta.b64 [bar]; mbarrier.arrive.shared::cta.b64 %rd9, [bar]; "
                            + wait("bar", 0, "")
                        )
                    elif end == "mbarrier.noinc":
                        body += "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; " + wait("bar", 0, "")
                    else:
                        body += (
                            "cp.async.wait_all; bar.sync 0; "
                            if end == "wait_all"
                            else "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; "
                        )
                    yield threadwise(name, body + read, [(words(name, n), n)], "b32", Exact(), per_thread=n)
    # Three groups in flight; each is read as soon as only the later ones are pending.
    name = "cp.async, three groups"
    body = SHARED.format(bytes=THREADS * 12) + (
        "mad.lo.u32 %r0, %tid0, 4, %r50; ld.param.u64 %rd0, [in0]; mad.wide.u32 %rd0, %index, 12, %rd0; xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 4, %r50;"
    )
    for g in range(3):
        body += f" cp.async.ca.shared.global [%r0+{512 * g}], [%rd0+{4 * g}], 4; cp.async.commit_group;"
    for g in range(3):
        body += f" cp.async.wait_group {2 - g}; bar.sync 0; ld.shared.b32 %d{g}, [%r1+{512 * g}];"
    yield threadwise(name, body, [(words(name, 3), 3)], "b32", Exact(), per_thread=3)


def mbarriers() -> Iterator[Program]:
    own = "mad.lo.u32 %r0, %tid0, 4, %r50; xor.b32 %r1, %tid0, 77; mad.lo.u32 %r1, %r1, 4, %r50;"
    start = SHARED.format(bytes=THREADS * 4) + FIRST + own
    init = "@%p10 mbarrier.init.shared::cta.b64 [bar], {n}; bar.sync 0; "

    def one(name: str, body: str, n: int = THREADS) -> Program:
        return threadwise(name, start + init.format(n=n) + body, [(words(name), 1)], "b32", Exact())

    put, get = "st.shared.b32 [%r0], %a; ", "ld.shared.b32 %d, [%r1];"
    for form in ("test_wait", "try_wait"):
        yield one(
            f"mbarrier.{form}.parity",
            put + "mbarrier.arrive.shared::cta.b64 %rd9, [bar]; " + wait("bar", 0, "", form) + get,
        )
        token = f"mbarrier.arrive.shared::cta.b64 %rd9, [bar]; mov.u32 %r60, 0; W: mbarrier.{form}.shared::cta.b64 %p15, [bar], %rd9; @%p15 bra D; add.u32 %r60, %r60, 1; setp.lt.u32 %p14, %r60, 10000000; @%p14 bra W; trap; D: "
        yield one(f"mbarrier.{form} by state", put + token + get)
    yield one(
        "mbarrier.arrive with a count",
        put + "mbarrier.arrive.release.cta.shared::cta.b64 _, [bar], 3; " + wait("bar", 0, "") + get,
        3 * THREADS,
    )
    yield one("mbarrier.arrive_drop",
        put + "setp.lt.u32 %p0, %tid0, 64; @%p0 bra P; mbarrier.arrive_drop.shared::cta.b64 %rd9, [bar]; mov.b32 %d, 5; bra E;"
        " P: mbarrier.arrive.shared::cta.b64 %rd9, [bar]; " + wait("bar", 0, "1") + "ld.shared.b32 %r3, [%r1];"
        # The second phase needs only those that stayed.
        " mbarrier.arrive.shared::cta.b64 %rd9, [bar]; " + wait("bar", 1, "2") + "not.b32 %r4, %r3; st.shared.b32 [%r0], %r4;"
        " mbarrier.arrive.shared::cta.b64 %rd9, [bar]; " + wait("bar", 0, "3") + "xor.b32 %r2, %tid0, 13; mad.lo.u32 %r2, %r2, 4, %r50; ld.shared.b32 %d, [%r2]; E:")  # fmt: skip
    phases = put
    for phase in range(4):
        phases += (
            "mbarrier.arrive.shared::cta.b64 %rd9, [bar]; "
            + wait("bar", phase % 2, f"a{phase}")
            + "ld.shared.b32 %r3, [%r1]; mad.lo.u32 %r3, %r3, 5, 1; "
        )
        phases += (
            "mbarrier.arrive.shared::cta.b64 %rd9, [bar2]; "
            + wait("bar2", phase % 2, f"b{phase}")
            + "st.shared.b32 [%r0], %r3; "
        )
    init2 = f"@%p10 mbarrier.init.shared::cta.b64 [bar2], {THREADS}; bar.sync 0; "
    yield one("mbarrier, four phases", init2 + phases + "bar.sync 0; ld.shared.b32 %d, [%r1];")
    yield one("mbarrier.expect_tx and complete_tx", put + "setp.lt.u32 %p0, %tid0, 32; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 8; mbarrier.arrive.shared::cta.b64 %rd9, [bar];"
        " mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 8; " + wait("bar", 0, "") + get)  # fmt: skip
    yield one("mbarrier.pending_count", "mbarrier.arrive.noComplete.shared::cta.b64 %rd9, [bar], 2; bar.sync 0; mov.b32 %d, 0; @!%p10 bra E; mbarrier.arrive.noComplete.shared::cta.b64 %rd9, [bar], 5;"
        " mbarrier.pending_count.b64 %d, %rd9; E:", 1000)  # fmt: skip
    yield one("mbarrier.inval and a second life", put + "mbarrier.arrive.shared::cta.b64 %rd9, [bar]; " + wait("bar", 0, "1") + "bar.sync 0; @%p10 mbarrier.inval.shared::cta.b64 [bar];"
        f" @%p10 mbarrier.init.shared::cta.b64 [bar], {2 * THREADS}; bar.sync 0; mbarrier.arrive.shared::cta.b64 %rd9, [bar], 2; " + wait("bar", 0, "2") + get)  # fmt: skip


def bulk() -> Iterator[Program]:
    init = (
        SHARED.format(bytes=THREADS * 16)
        + FIRST
        + "@%p10 mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta; bar.sync 0; "
    )
    cta = "ld.param.u64 %rd0, [{p}]; mov.u32 %r10, %ctaid.x; mad.wide.u32 %rd0, %r10, 2048, %rd0; "
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048;"
    get = (
        "xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 16, %r50; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%r1];"
    )
    for pieces in (1, 2, 16):
        name = f"cp.async.bulk to shared memory in {pieces}"
        size = 2048 // pieces
        body = init + cta.format(p="in0") + f"@!%p10 bra L; {expect} "
        body += " ".join(
            f"{load} [%r50+{size * k}], [%rd0+{size * (pieces - 1 - k)}], {size}, [bar];"
            for k in range(pieces)
        )
        yield threadwise(
            name,
            body + " L: " + wait("bar", 0, "") + get,
            [(words(name, 4), 4)],
            "b32",
            Exact(),
            per_thread=4,
        )
    name = "cp.async.bulk, expect_tx after the copy"
    body = init + cta.format(p="in0") + f"@!%p10 bra L; {load} [%r50], [%rd0], 2048, [bar]; {expect} L: "
    yield threadwise(
        name, body + wait("bar", 0, "") + get, [(words(name, 4), 4)], "b32", Exact(), per_thread=4
    )

    put = "mad.lo.u32 %r0, %tid0, 16, %r50; st.shared.v4.b32 [%r0], {%a0, %a1, %a2, %a3}; fence.proxy.async.shared::cta; bar.sync 0; "
    read = "bar.sync 0; {cta}xor.b32 %r1, %tid0, 45; mad.wide.u32 %rd1, %r1, 16, %rd0; ld.global.v4.b32 {{%d0, %d1, %d2, %d3}}, [%rd1]; bar.sync 0;"
    for end in ("wait_group 0", "two groups"):
        name = f"cp.async.bulk to global memory, {end}"
        store = "cp.async.bulk.global.shared::cta.bulk_group"
        copies = (
            f"{store} [%rd0], [%r50], 1024; "
            + ("cp.async.bulk.commit_group; " if end != "wait_group 0" else "")
            + f"{store} [%rd0+1024], [%r50+1024], 1024; cp.async.bulk.commit_group; "
        )
        waits = (
            "cp.async.bulk.wait_group 0; "
            if end == "wait_group 0"
            else "cp.async.bulk.wait_group.read 1; cp.async.bulk.wait_group 0; "
        )
        body = init + put + cta.format(p="out") + f"@!%p10 bra L; {copies}{waits} L: " + read.format(cta="")
        yield threadwise(name, body, [(words(name, 4), 4)], "b32", Exact(), per_thread=4)
    reductions = [("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")]
    reductions += [(o, t) for o in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")]
    reductions += [(o, t) for o in ("and", "or", "xor") for t in ("b32", "b64")] + [
        ("inc", "u32"),
        ("dec", "u32"),
    ]
    for op, form in reductions:
        name, ty = f"cp.reduce.async.bulk to global memory {op}.{form}", form.split(".")[-1]
        rng, per = generator(name), 128 // width(ty)
        wide = UINT[width(ty)]
        a, b = ((operand(ty, N * per, k, rng)).astype(wide).view(np.uint32) for k in (0, 1))
        if ty in FLOATS and op == "add":
            a, b = (FLOATS[ty].encode(rng.standard_normal(N * per)).view(np.uint32) for _ in range(2))
        # Memory holds the second operand's array, which is updated and read back.
        body = init + put + cta.format(p="in1") + (
            f"@!%p10 bra L; cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{form} [%rd0], [%r50], 2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; L: "
        ) + read.format(cta="")  # fmt: skip
        yield threadwise(name, body, [(a, 4), (b, 4)], "b32", Typed(ty), per_thread=4)


class Typed(Exact):
    """Results stored as words, compared as elements of another type."""

    def canonical(self, bits: np.ndarray) -> np.ndarray:
        if self.type[0] in "usb" and self.type not in FLOATS:
            return bits
        return super().canonical(bits)


# cp.reduce.async.bulk to shared memory.
REDUCTIONS = [(o, t) for o in ("add", "min", "max") for t in ("u32", "s32")]
REDUCTIONS += [("inc", "u32"), ("dec", "u32"), ("add", "u64")] + [(o, "b32") for o in ("and", "or", "xor")]


def clusters() -> Iterator[Program]:
    """CTAs of a cluster read and write each other's shared memory."""

    def in_cluster(p: Program, n: int) -> Program:
        p.cluster = n
        return p

    both = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "
    start = (
        SHARED.format(bytes=THREADS * 16)
        + FIRST
        + (
            "mad.lo.u32 %r0, %tid0, 4, %r50; mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %cluster_nctarank; add.u32 %r12, %r10, 1; rem.u32 %r12, %r12, %r11; "
        )
    )
    for n in (2, 4, 8):
        name = f"ld.shared::cluster of {n}"
        body = (
            start
            + f"st.shared.b32 [%r0], %a; {both}mapa.shared::cluster.u32 %r2, %r0, %r12; ld.shared::cluster.b32 %d, [%r2]; {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact()), n)
        name = f"st.shared::cluster of {n}, generic"
        body = (
            start
            + f"{both}cvt.u64.u32 %rd0, %r0; cvta.shared.u64 %rd0, %rd0; mapa.u64 %rd1, %rd0, %r12; st.b32 [%rd1], %a; {both}ld.shared.b32 %d, [%r0];"
        )
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact()), n)
        name = f"atom.shared::cluster of {n}"
        body = (
            start
            + f"mov.b32 %r3, 0; @%p10 st.shared.b32 [%r50], %r3; {both}mov.u32 %r4, 0; mapa.shared::cluster.u32 %r2, %r50, %r4; atom.shared::cluster.add.u32 %r5, [%r2], %a; {both}ld.shared::cluster.b32 %d, [%r2]; {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact()), n)
        name = f"special registers of a cluster of {n}"
        body = (
            start
            + "mov.u32 %d0, %clusterid.x; mov.u32 %d1, %nclusterid.x; mov.u32 %d2, %cluster_ctaid.x; mov.u32 %d3, %cluster_nctarank; mov.u32 %d4, %cluster_ctarank; mapa.shared::cluster.u32 %r2, %r0, %r12; cvt.u64.u32 %rd0, %r0; cvta.shared.u64 %rd0, %rd0; mapa.u64 %rd1, %rd0, %r12; getctarank.u64 %d5, %rd1; getctarank.shared::cluster.u32 %r3, %r2; add.u32 %d5, %d5, %r3;"
        )
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact(), per_thread=6), n)
        name = f"remote mbarrier.arrive in a cluster of {n}"
        body = (
            start
            + f"@%p10 mbarrier.init.shared::cta.b64 [bar], {THREADS}; {both}mapa.shared::cluster.u32 %r2, %r0, %r12; st.shared::cluster.b32 [%r2], %a; mov.u32 %r13, bar; mapa.shared::cluster.u32 %r3, %r13, %r12; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3]; "
        )
        body += (
            wait("bar", 0, "").replace("try_wait.parity.shared", "try_wait.parity.acquire.cluster.shared")
            + f"ld.shared.b32 %d, [%r0]; {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact()), n)
        for ty, vec in (("b32", 1), ("b32", 4), ("b64", 2)):
            name = f"st.async.{ty}.v{vec} in a cluster of {n}"
            size = width(ty) // 8 * vec
            regs = "%a0, %a1, %a2, %a3" if vec == 4 else "%a0"
            value = ("{%a0, %a1, %a2, %a3}" if vec == 4 else "%a0") if ty == "b32" else "{%rd5, %rd6}"
            lanes = size // 4
            body = (
                start
                + f"mad.lo.u32 %r0, %tid0, {size}, %r50; @%p10 mbarrier.init.shared::cta.b64 [bar], 1; @%p10 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size * THREADS}; {both}"
            )
            if ty == "b64":
                body += "mov.b64 %rd5, {%a0, %a1}; mov.b64 %rd6, {%a2, %a3}; "
            suffix = f".v{vec}" if vec > 1 else ""
            body += f"mov.u32 %r13, bar; mapa.shared::cluster.u32 %r2, %r0, %r12; mapa.shared::cluster.u32 %r3, %r13, %r12; st.async.shared::cluster.mbarrier::complete_tx::bytes{suffix}.{ty} [%r2], {value}, [%r3]; "
            body += (
                wait("bar", 0, "")
                + (
                    f"ld.shared.v4.b32 {vector('d', 4)}, [%r0]; "
                    if lanes == 4
                    else "ld.shared.b32 %d0, [%r0]; mov.b32 %d1, %a1; mov.b32 %d2, %a2; mov.b32 %d3, %a3; "
                )
                + both
            )
            assert regs
            yield in_cluster(threadwise(name, body, [(words(name, 4), 4)], "b32", Exact(), per_thread=4), n)
        name = f"red.async in a cluster of {n}"
        body = (
            start
            + f"mov.b32 %r4, 1000; st.shared.b32 [%r0], %r4; @%p10 mbarrier.init.shared::cta.b64 [bar], 1; @%p10 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {4 * THREADS}; {both}mov.u32 %r13, bar; mapa.shared::cluster.u32 %r2, %r0, %r12; mapa.shared::cluster.u32 %r3, %r13, %r12; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2], %a, [%r3]; "
        )
        body += wait("bar", 0, "") + f"ld.shared.b32 %d, [%r0]; {both}"
        yield in_cluster(threadwise(name, body, [(words(name), 1)], "b32", Exact()), n)
        # The first CTA's copy goes to all; the mask leaves one out where there are more than two.
        mask = (1 << n) - 1 if n == 2 else (1 << n) - 1 & ~2
        name = f"cp.async.bulk multicast in a cluster of {n}"
        body = (
            start
            + f"@%p10 mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta; {both}mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0; "
        )
        body += f"mov.u32 %r5, 1; shl.b32 %r5, %r5, %r10; and.b32 %r5, %r5, {mask}; setp.eq.u32 %p1, %r5, 0; @%p1 bra E; @%p10 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048; "
        body += f"setp.eq.u32 %p2, %r10, 0; and.pred %p2, %p2, %p10; mov.b16 %h1, {mask}; ld.param.u64 %rd0, [in0]; mov.u32 %r6, %clusterid.x; mad.wide.u32 %rd0, %r6, {2048 * n}, %rd0; "
        body += "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r50], [%rd0], 2048, [bar], %h1; "
        body += (
            wait("bar", 0, "")
            + f"xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 16, %r50; ld.shared.v4.b32 {vector('d', 4)}, [%r1]; E: {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name, 4), 4)], "b32", Exact(), per_thread=4), n)
        name = f"cp.async.bulk to another CTA's shared memory in a cluster of {n}"
        body = (
            start
            + f"mad.lo.u32 %r0, %tid0, 16, %r50; @%p10 mbarrier.init.shared::cta.b64 [bar], 1; .shared .align 128 .b8 to[2048]; mov.u32 %r14, to; st.shared.v4.b32 [%r0], {vector('a', 4)}; fence.proxy.async.shared::cta; {both}"
        )
        body += "@!%p10 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048; mov.u32 %r13, bar; mapa.shared::cluster.u32 %r2, %r14, %r12; mapa.shared::cluster.u32 %r3, %r13, %r12; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%r50], 2048, [%r3]; L: "
        body += (
            wait("bar", 0, "")
            + f"xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 16, %r14; ld.shared.v4.b32 {vector('d', 4)}, [%r1]; {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name, 4), 4)], "b32", Exact(), per_thread=4), n)
        for op, ty in REDUCTIONS if n == 2 else [("add", "u32"), ("xor", "b32")]:
            name = f"cp.reduce.async.bulk {op}.{ty} to another CTA in a cluster of {n}"
            body = (
                start
                + f"mad.lo.u32 %r0, %tid0, 16, %r50; @%p10 mbarrier.init.shared::cta.b64 [bar], 1; .shared .align 128 .b8 to[2048]; mov.u32 %r14, to; mad.lo.u32 %r15, %tid0, 16, %r14; st.shared.v4.b32 [%r0], {vector('a', 4)}; st.shared.v4.b32 [%r15], {vector('b', 4)}; fence.proxy.async.shared::cta; {both}"
                + f"@!%p10 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048; mov.u32 %r13, bar; mapa.shared::cluster.u32 %r2, %r14, %r12; mapa.shared::cluster.u32 %r3, %r13, %r12; cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{ty} [%r2], [%r50], 2048, [%r3]; L: "
                + wait("bar", 0, "")
                + f"xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 16, %r14; ld.shared.v4.b32 {vector('d', 4)}, [%r1]; {both}"
            )
            values = [(words(name, 4), 4), (words(name + "b", 4), 4)]
            yield in_cluster(threadwise(name, body, values, "b32", Exact(), per_thread=4), n)
    # A CTA's copy to itself. Without a cluster an H100 refuses these copies.
    for how, to in (
        ("mapa", "mapa.shared::cluster.u32 %r2, %r14, %r10; mapa.shared::cluster.u32 %r3, %r13, %r10;"),
        ("its own address", "mov.u32 %r2, %r14; mov.u32 %r3, %r13;"),
    ):
        name = f"cp.async.bulk within shared memory by {how}"
        body = (
            start
            + f"mad.lo.u32 %r0, %tid0, 16, %r50; @%p10 mbarrier.init.shared::cta.b64 [bar], 1; .shared .align 128 .b8 to[2048]; mov.u32 %r14, to; st.shared.v4.b32 [%r0], {vector('a', 4)}; fence.proxy.async.shared::cta; {both}"
            + f"@!%p10 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048; mov.u32 %r13, bar; {to} cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2], [%r50], 2048, [%r3]; L: "
            + wait("bar", 0, "")
            + f"xor.b32 %r1, %tid0, 45; mad.lo.u32 %r1, %r1, 16, %r14; ld.shared.v4.b32 {vector('d', 4)}, [%r1]; {both}"
        )
        yield in_cluster(threadwise(name, body, [(words(name, 4), 4)], "b32", Exact(), per_thread=4), 2)


def programs() -> Iterator[Program]:
    for group, name in (
        (cp_async, "cp.async"),
        (mbarriers, "mbarrier"),
        (bulk, "bulk copies"),
        (clusters, "clusters"),
    ):
        for p in group():
            p.group = name
            yield p
