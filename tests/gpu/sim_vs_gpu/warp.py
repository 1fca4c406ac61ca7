"""Exchanges inside a warp, and barriers with reductions."""

from __future__ import annotations

from collections.abc import Iterator

from .arithmetic import simple
from .formats import generator, operand
from .program import Exact, N, Program, threadwise

FULL = "0xffffffff"
# Members as a warp that split in two: the lower lanes, and the others.
SPLIT = "and.b32 %r9, %tid0, 31; setp.lt.u32 %p9, %r9, 11; selp.b32 %r8, 0x7ff, 0xfffff800, %p9;"


def shuffles() -> Iterator[Program]:
    for mode in ("idx", "up", "down", "bfly"):
        for lane, clamp in ((1, 31), (5, 31), (16, 31), (3, 0x181F), (9, 0x1C07), (2, 0x1007)):
            clamp = clamp & ~31 if mode == "up" else clamp
            yield twice(f"shfl.sync.{mode} {lane} {clamp:#x}", f"shfl.sync.{mode}.b32 %d0|%p0, %a, {lane}, {clamp}, {FULL}; selp.b32 %d1, 1, 0, %p0;")  # fmt: skip
        # Each lane with a place of its own.
        clamp = 0 if mode == "up" else 31
        yield twice(f"shfl.sync.{mode} varying", f"xor.b32 %r0, %tid0, %a; and.b32 %r0, %r0, 63; shfl.sync.{mode}.b32 %d0|%p0, %a, %r0, {clamp}, {FULL}; selp.b32 %d1, 1, 0, %p0;")  # fmt: skip
    # Idle lanes are not read: each half stays within itself.
    yield twice("shfl.sync.idx in two halves", f"{SPLIT} selp.b32 %r7, 4, 20, %p9; shfl.sync.idx.b32 %d0|%p0, %a, %r7, 31, %r8; selp.b32 %d1, 1, 0, %p0;")  # fmt: skip


def twice(name: str, body: str) -> Program:
    """Two results a thread, from one operand."""
    values = operand("b32", N, 0, generator(name))
    return threadwise(name, body, [(values, 1)], "b32", Exact(), per_thread=2)


def votes() -> Iterator[Program]:
    for source, label in (
        ("setp.lt.s32 %p0, %a, 0;", ""),
        ("setp.ne.b32 %p0, %a, 0x55;", " mostly"),
        ("setp.eq.b32 %p0, %a, %a;", " all"),
        ("setp.ne.b32 %p0, %a, %a;", " none"),
    ):
        yield simple(
            f"vote.sync.ballot{label}",
            "b32",
            body=f"{source} vote.sync.ballot.b32 %d, %p0, {FULL};",
            label=f"vote.sync.ballot{label}",
        )
        for name in ("any", "all", "uni"):
            label_ = f"vote.sync.{name}{label}"
            yield simple(label_, "b32", body=f"{source} vote.sync.{name}.pred %p1, !%p0, {FULL}; selp.b32 %d, 1, 0, %p1;")  # fmt: skip
    yield simple("vote.sync.ballot in two halves", "b32", body=f"{SPLIT} setp.lt.s32 %p0, %a, 0; vote.sync.ballot.b32 %d, %p0, %r8;")  # fmt: skip
    for bits in (32, 64):
        for mask, label in ((3, ""), (0, " equal"), (0x11, " few")):
            name = f"match.any.sync.b{bits}{label}"
            yield simple(name, f"b{bits}", "b32", f"and.b{bits} %a, %a, {mask}; match.any.sync.b{bits} %d, %a, {FULL};")  # fmt: skip
            name = f"match.all.sync.b{bits}{label}"
            values = operand(f"b{bits}", N, 0, generator(name))
            body = f"and.b{bits} %a, %a, {mask}; match.all.sync.b{bits} %d0|%p0, %a, {FULL}; selp.b32 %d1, 1, 0, %p0;"
            yield threadwise(name, body, [(values, 1)], "b32", Exact(), per_thread=2)
    yield simple("activemask", "b32", body="mov.b32 %d, 0; bar.warp.sync 0xffffffff; activemask.b32 %d;")
    yield simple("elect.sync", "b32", body=f"elect.sync %r0|%p0, {FULL}; selp.b32 %r1, 256, 0, %p0; add.u32 %d, %r0, %r1;")  # fmt: skip
    yield simple("elect.sync in two halves", "b32", body=f"{SPLIT} elect.sync %r0|%p0, %r8; selp.b32 %r1, 256, 0, %p0; add.u32 %d, %r0, %r1;")  # fmt: skip


def reductions() -> Iterator[Program]:
    for name in ("add", "min", "max"):
        for ty in ("s32", "u32"):
            yield simple(f"redux.sync.{name}.{ty}", ty, body=f"redux.sync.{name}.{ty} %d, %a, {FULL};")
            label = f"redux.sync.{name}.{ty} in two halves"
            yield simple(label, ty, body=f"{SPLIT} redux.sync.{name}.{ty} %d, %a, %r8;")
    for name in ("and", "or", "xor"):
        yield simple(f"redux.sync.{name}.b32", "b32", body=f"redux.sync.{name}.b32 %d, %a, {FULL};")
    for name, result in (("popc", "u32"), ("and", "pred"), ("or", "pred")):
        for form in ("bar", "barrier"):
            if result == "u32":
                body = f"setp.lt.s32 %p0, %a, 0; {form}.red.popc.u32 %d, 1, !%p0;"
            else:
                body = (
                    f"setp.ne.b32 %p0, %a, 0x55; {form}.red.{name}.pred %p1, 1, %p0; selp.b32 %d, 1, 0, %p1;"
                )
            yield simple(f"{form}.red.{name}", "b32", body=body)
    # Two warps at a barrier of their own.
    yield simple("barrier.sync of 64 threads", "b32", body=(
        ".shared .align 4 .b8 s[512]; mov.u64 %rd0, s; mad.wide.u32 %rd1, %tid0, 4, %rd0; st.shared.b32 [%rd1], %a;"
        " shr.u32 %r0, %tid0, 6; add.u32 %r0, %r0, 2; barrier.sync %r0, 64; xor.b32 %r1, %tid0, 63;"
        " mad.wide.u32 %rd1, %r1, 4, %rd0; ld.shared.b32 %d, [%rd1];"))  # fmt: skip
    # Producers arrive, consumers wait.
    yield simple("barrier.arrive", "b32", body=(
        ".shared .align 4 .b8 s[256]; mov.u64 %rd0, s; and.b32 %r0, %tid0, 63; mad.wide.u32 %rd1, %r0, 4, %rd0; mov.b32 %d, 7;"
        " setp.lt.u32 %p0, %tid0, 64; @%p0 st.shared.b32 [%rd1], %a; @%p0 barrier.arrive 1, 128; @!%p0 barrier.sync 1, 128;"
        " @!%p0 ld.shared.b32 %d, [%rd1];"))  # fmt: skip
    yield simple("ld and st of shared memory", "b32", body=(
        ".shared .align 16 .b8 s[512]; mov.u64 %rd0, s; mad.wide.u32 %rd1, %tid0, 4, %rd0; st.shared.b32 [%rd1], %a;"
        " bar.sync 0; xor.b32 %r0, %tid0, 77; mad.wide.u32 %rd1, %r0, 4, %rd0; ld.shared.b32 %d, [%rd1];"))  # fmt: skip
    yield simple("loads of bytes", "b32", body=(
        ".shared .align 16 .b8 s[512]; mov.u64 %rd0, s; mad.wide.u32 %rd1, %tid0, 4, %rd0; st.shared.b32 [%rd1], %a;"
        " bar.sync 0; ld.shared.s8 %r0, [%rd1+1]; ld.shared.u8 %r1, [%rd1+2]; ld.shared.s16 %r2, [%rd1+2];"
        " mad.lo.u32 %r0, %r1, 77, %r0; mad.lo.u32 %d, %r2, 31, %r0;"))  # fmt: skip
    yield simple("local memory and generic addresses", "b32", body=(
        ".local .align 8 .b8 l[64]; mov.u64 %rd0, l; cvta.local.u64 %rd1, %rd0; and.b32 %r0, %a, 15; mul.wide.u32 %rd2, %r0, 4;"
        " st.local.v4.b32 [l], {%a, %a, %a, %a}; st.local.v4.b32 [l+16], {%a, %tid0, %a, %a}; st.local.v4.b32 [l+32], {%a, %a, %a, %tid0};"
        " st.local.v4.b32 [l+48], {%tid0, %a, %a, %a}; add.u64 %rd1, %rd1, %rd2; ld.b32 %d, [%rd1];"))  # fmt: skip


def programs() -> Iterator[Program]:
    for group in (shuffles, votes, reductions):
        for p in group():
            p.group = "warp"
            yield p
