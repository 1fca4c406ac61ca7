//! `ttng`: operations of NVIDIA's Hopper that have no counterpart in `ttg`: warp-group matrix products and the fences
//! between the generic and the asynchronous proxy.

use crate::opdef::{Access, Effect, Resource};

const READ_A: Effect = Effect::new(Access::Read, Resource::Shared, Some("a")).asynchronous();
const READ_B: Effect = Effect::new(Access::Read, Resource::Shared, Some("b")).asynchronous();
const ORDER: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "ttng" Ttng;

    /// `d = a · b + c` by `wgmma`. `b` is a buffer, `a` a buffer or a tensor of `dot_op<0>` fragments. With `isAsync` the
    /// result may not be looked at, nor the buffers written, before a `ttng.warp_group_dot_wait`. `inputPrecision` is 0
    /// for tf32, 1 for tf32x3, 2 for ieee.
    op WarpGroupDot = "warp_group_dot" {
        operands(a: one, b: one, c: one)
        attrs(
            input_precision: i32 = "inputPrecision",
            max_num_imprecise_acc: Option<i32> = "maxNumImpreciseAcc",
            is_async: bool = "isAsync",
        )
        results(d)
        effects(READ_A, READ_B)
        format "$a `,` $b `,` $c attr-dict `:` type($a) `*` type($b) `->` type($d)"
    }

    /// Waits until at most `pendings` of this warp group's products are under way. The results are the inputs: results of
    /// products (valid after it) and buffers that they read (in use until it).
    op WarpGroupDotWait = "warp_group_dot_wait" {
        operands(inputs: var)
        attrs(pendings: i32 = "pendings")
        variadic_results(outputs)
        effects(ORDER)
        format "$inputs attr-dict `:` type($inputs)"
    }

    /// Orders this thread's earlier accesses to shared memory before later ones of the asynchronous proxy, such as the
    /// operand reads of `wgmma` (`fence.proxy.async`).
    op FenceAsyncShared = "fence_async_shared" {
        attrs(cluster: bool = "bCluster")
        effects(ORDER)
        format "attr-dict"
    }
}
