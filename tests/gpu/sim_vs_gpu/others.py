"""What the other groups leave out: hints, which change nothing, branches by table, exits, tensor maps made by the kernel."""

from __future__ import annotations

from collections.abc import Iterator

from .arithmetic import simple
from .copies import wait
from .program import THREADS, Program

# %rd0: this thread's element of the first operand; %rd1: that of the CTA's first thread.
PLACE = (
    f"ld.param.u64 %rd1, [in0]; mov.u32 %r40, %ctaid.x; mul.lo.u32 %r40, %r40, {4 * THREADS}; cvt.u64.u32 %rd2, %r40;"
    " add.u64 %rd1, %rd1, %rd2; mad.wide.u32 %rd0, %tid0, 4, %rd1; "
)


def hints() -> Iterator[Program]:
    yield simple("ldu.global.b32", "b32", body=PLACE + "ldu.global.b32 %d, [%rd1];")
    for name in (
        "prefetch.global.L1",
        "prefetch.global.L2",
        "prefetch.L1",
        "prefetchu.L1",
        "prefetch.global.L2::evict_last",
    ):
        yield simple(name, "b32", body=PLACE + f"{name} [%rd0]; ld.global.b32 %d, [%rd0];")
    name = "applypriority.global.L2::evict_normal"
    yield simple(name, "b32", body=PLACE + f"{name} [%rd1], 128; ld.global.b32 %d, [%rd0];")
    yield simple("cp.async.bulk.prefetch.L2.global", "b32", body=PLACE + "cp.async.bulk.prefetch.L2.global [%rd1], 128; ld.global.b32 %d, [%rd0];")  # fmt: skip
    # What was discarded may be anything until it is written again.
    yield simple("discard.global.L2", "b32", body="ld.param.u64 %rd3, [out]; mov.u32 %r41, %ctaid.x; mad.wide.u32 %rd3, %r41, 512, %rd3; setp.eq.u32 %p0, %tid0, 0;"
        " @%p0 discard.global.L2 [%rd3], 128; bar.sync 0; mov.b32 %d, %a;")  # fmt: skip
    for policy in (
        "fractional.L2::evict_last.b64 %rd4, 0.5",
        "fractional.L2::evict_first.L2::evict_unchanged.b64 %rd4",
    ):
        yield simple("createpolicy", "b32", label=f"createpolicy.{policy.split()[0]}", body=PLACE + f"createpolicy.{policy}; ld.global.L2::cache_hint.b32 %d, [%rd0], %rd4;")  # fmt: skip
    for name in (
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "griddepcontrol.wait",
        "griddepcontrol.launch_dependents",
        "nanosleep.u32 20",
        "pmevent 1",
    ):
        yield simple(name, "b32", body=f"{name}; not.b32 %d, %a;")
    p = simple("setmaxnreg", "b32", body="setmaxnreg.dec.sync.aligned.u32 64; not.b32 %d, %a; setmaxnreg.inc.sync.aligned.u32 128;")  # fmt: skip
    p.ptx = p.ptx.replace(") {\n", f")\n.maxntid {THREADS}, 1, 1\n{{\n", 1)
    yield p


def control() -> Iterator[Program]:
    yield simple("exit", "b32", body="mov.b32 %d, 7; setp.lt.s32 %p0, %a, 0; @%p0 exit;")
    ways = " ".join(f"L{k}: xor.b32 %d, %a, {k * 1001}; bra.uni E;" for k in range(4))
    yield simple("brx.idx", "b32", body=f"and.b32 %r0, %a, 3; ts: .branchtargets L0, L1, L2, L3; brx.idx %r0, ts; {ways} E: add.u32 %d, %d, 1;")  # fmt: skip
    addresses = (
        ".shared .align 4 .b8 s[4]; .local .align 4 .b8 l[4]; mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5;"
        " and.b32 %r0, %a, 3; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1; selp.b64 %rd6, %rd0, %rd4, %p0; selp.b64 %rd6, %rd5, %rd6, %p1;"
    )  # fmt: skip
    for space in ("global", "shared", "shared::cta", "shared::cluster", "local"):
        yield simple(f"isspacep.{space}", "b32", body=PLACE + addresses + f" isspacep.{space} %p2, %rd6; selp.b32 %d, 1, 0, %p2;")  # fmt: skip


def made_maps() -> Iterator[Program]:
    """A tensor of 64 rows of 16 words, of which each CTA loads 8 through a map that it has made in shared memory."""
    for swizzle, fill in ((0, 0), (2, 1)):
        changes = [
            "global_address.shared::cta.b1024.b64 [%rd5], %rd7",
            "rank.shared::cta.b1024.b32 [%rd5], 1",
            *(f"box_dim.shared::cta.b1024.b32 [%rd5], {d}, {n}" for d, n in enumerate((16, 8))),
            # The last CTA's box reaches past the end.
            *(f"global_dim.shared::cta.b1024.b32 [%rd5], {d}, {n}" for d, n in enumerate((16, 60))),
            "global_stride.shared::cta.b1024.b64 [%rd5], 0, 64",
            *(f"element_stride.shared::cta.b1024.b32 [%rd5], {d}, 1" for d in range(2)),
            "elemtype.shared::cta.b1024.b32 [%rd5], 7",
            "interleave_layout.shared::cta.b1024.b32 [%rd5], 0",
            f"swizzle_mode.shared::cta.b1024.b32 [%rd5], {swizzle}",
            f"fill_mode.shared::cta.b1024.b32 [%rd5], {fill}",
        ]
        body = (
            ".shared .align 128 .b8 m[128]; .shared .align 1024 .b8 s[512]; .shared .align 8 .b64 bar; mov.u32 %r50, m; mov.u32 %r51, s; mov.u32 %r40, %ctaid.x;"
            " setp.lt.u32 %p1, %tid0, 32; setp.eq.u32 %p10, %tid0, 0; mad.lo.u32 %r0, %tid0, 4, %r50; mov.b32 %r1, 0; @%p1 st.shared.b32 [%r0], %r1; bar.sync 0;"
            " ld.param.u64 %rd7, [in0]; cvt.u64.u32 %rd5, %r50; mov.u64 %rd6, maps; mad.wide.u32 %rd6, %r40, 128, %rd6; "
            + " ".join(f"@%p10 tensormap.replace.tile.{c};" for c in changes)
            + " @!%p1 bra X; bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd6], [%rd5], 128;"
            " fence.proxy.tensormap::generic.acquire.gpu [%rd6], 128; X: @%p10 mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta; bar.sync 0;"
            " @!%p10 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512; shl.b32 %r2, %r40, 3; cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd6, {0, %r2}];"
            " cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r51], [%rd6, {0, %r2}], [bar]; L: "
            + wait("bar", 0, "")
            + "xor.b32 %r3, %tid0, 45; mad.lo.u32 %r3, %r3, 4, %r51; ld.shared.b32 %d, [%r3];"
        )
        label = f"tensormap.replace, swizzle {swizzle} fill {fill}"
        yield simple("tensormap.replace", "b32", body=body, label=label, declare=".global .align 128 .b8 maps[1024];")  # fmt: skip


def programs() -> Iterator[Program]:
    for group in (hints, control, made_maps):
        for p in group():
            p.group = "others"
            yield p
