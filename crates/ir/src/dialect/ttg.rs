//! `ttg`: operations that speak of layouts, shared memory and asynchronous copies. Tensors have an encoding.
//!
//! Module attributes: `ttg.num-warps`, `ttg.num-ctas`, `ttg.threads-per-warp`, `ttg.target` (`"cuda:90"`), and after
//! allocation `ttg.shared` (bytes). After allocation, operations with a buffer or scratch carry `allocation.offset`.

use crate::opdef::{Access, Completion, Effect, Resource};

const READ_SRC: Effect = Effect::new(Access::Read, Resource::Shared, Some("src"));
const WRITE_DST: Effect = Effect::new(Access::Write, Resource::Shared, Some("dst"));
const ALLOC: Effect = Effect::new(Access::Allocate, Resource::Shared, None);
const BARRIER: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "ttg" Ttg;

    /// The same tensor in another layout. May use scratch shared memory (`allocation.offset`).
    op ConvertLayout = "convert_layout" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// A shared-memory buffer, initialized with `src` where given.
    op LocalAlloc = "local_alloc" {
        operands(src: opt)
        results(result)
        effects(ALLOC, Effect::new(Access::Write, Resource::Shared, None))
        format "($src^)? attr-dict `:` functional-type(operands, $result)"
    }

    /// Ends the life of a buffer.
    op LocalDealloc = "local_dealloc" {
        operands(src: one)
        effects(Effect::new(Access::Free, Resource::Shared, Some("src")))
        format "$src attr-dict `:` type($src)"
    }

    /// Reads a buffer into registers. With a token, what the token waits for is visible.
    op LocalLoad = "local_load" {
        operands(src: one, token: opt)
        results(result)
        effects(READ_SRC)
        format "$src (`token` $token^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// Writes registers to a buffer.
    op LocalStore = "local_store" {
        operands(src: one, dst: one)
        effects(WRITE_DST)
        format "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"
    }

    /// The `index`-th buffer of a multi-buffered allocation (drops the leading dimension).
    op MemdescIndex = "memdesc_index" {
        operands(src: one, index: one)
        results(result)
        traits(Pure)
        format "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"
    }

    /// A sub-tile at constant offsets.
    op MemdescSubslice = "memdesc_subslice" {
        operands(src: one)
        attrs(offsets: Vec<i32> = "offsets")
        results(result)
        traits(Pure)
        format "$src `` $offsets attr-dict `:` type($src) `->` type($result)"
    }

    /// The buffer with its dimensions permuted (no data moves).
    op MemdescTrans = "memdesc_trans" {
        operands(src: one)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The buffer's elements in row-major order under another shape (no data moves).
    op MemdescReshape = "memdesc_reshape" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The buffer's bytes as another shape, element type and layout.
    op MemdescReinterpret = "memdesc_reinterpret" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Global memory of this launch, `nbytes` for each CTA.
    op GlobalScratchAlloc = "global_scratch_alloc" {
        attrs(alignment: i32 = "alignment", nbytes: i32 = "nbytes")
        results(result)
        effects(Effect::new(Access::Allocate, Resource::Global, None))
        format "attr-dict `:` type($result)"
    }

    /// Starts copying global memory into a buffer (`cp.async`); done when a wait on its commit group returns.
    op AsyncCopyGlobalToLocal = "async_copy_global_to_local" {
        operands(src: one, dst: one, mask: opt, other: opt)
        attrs(
            cache: crate::dialect::tt::CacheModifier = "cacheModifier",
            evict: crate::dialect::tt::EvictionPolicy = "evictionPolicy",
            is_volatile: bool = "isVolatile",
        )
        results(token)
        effects(
            Effect::new(Access::Read, Resource::Global, Some("src")),
            WRITE_DST.asynchronous(Completion::Copies)
        )
        format "$src `,` $dst (`mask` $mask^)? (`other` $other^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($src) `->` short-type(ttg.memdesc, $dst)"
    }

    /// Closes a group of asynchronous copies.
    op AsyncCommitGroup = "async_commit_group" {
        operands(tokens: var)
        results(token)
        effects(BARRIER)
        format "(`tokens` $tokens^)? attr-dict"
    }

    /// Waits until at most `num` commit groups of this thread are pending.
    op AsyncWait = "async_wait" {
        operands(tokens: var)
        attrs(num: i32 = "num")
        results(token)
        effects(BARRIER)
        format "($tokens^)? attr-dict"
    }

    /// A barrier of the enclosing scope (all threads of the CTA or of the partition).
    op Barrier = "barrier" {
        effects(BARRIER)
        format "attr-dict"
    }

    /// The index of the warp within the enclosing scope.
    op WarpId = "warp_id" {
        results(result)
        traits(Pure)
        format "attr-dict"
    }
}
