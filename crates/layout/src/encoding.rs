//! Encodings: the names and parameters under which layouts appear in `ttg` IR.
//!
//! They follow Triton 3.6's `#ttg.*` attributes so that IR text can be compared. Every vector is indexed by tensor
//! dimension; `order` lists dimensions from the fastest-varying to the slowest.

use std::sync::Arc;

/// How the elements of a tensor (or of a shared-memory buffer) are distributed.
///
/// Compared and hashed structurally; the IR uniques encodings inside types, so comparison there is by id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Each thread owns a `size_per_thread` block; threads tile a warp, warps tile a CTA, the whole tile repeats.
    Blocked {
        /// Elements each thread holds contiguously, per dimension.
        size_per_thread: Vec<u32>,
        /// Lanes per dimension; the product is 32.
        threads_per_warp: Vec<u32>,
        /// Warps per dimension; the product is the number of warps.
        warps_per_cta: Vec<u32>,
        /// Dimensions from the fastest-varying to the slowest.
        order: Vec<u32>,
    },
    /// Each warp owns a `size_per_warp` block, and warps tile a CTA (ML-Triton, section 2.1). Which lane has what of a block is
    /// not said: that follows from the instructions that the block is split for, later.
    WarpBlocked {
        /// Elements each warp holds, per dimension.
        size_per_warp: Vec<u32>,
        /// Warps per dimension; the product is the number of warps.
        warps_per_cta: Vec<u32>,
        /// Dimensions from the fastest-varying to the slowest.
        order: Vec<u32>,
    },
    /// The parent's layout with dimension `dim` removed (the result of a reduction along `dim`).
    Slice {
        /// The removed dimension of the parent.
        dim: u32,
        /// The layout of rank + 1.
        parent: Arc<Encoding>,
    },
    /// Operand `op_idx` (0 = A, 1 = B) of a dot whose result has the `parent` layout.
    DotOperand {
        /// 0 for A, 1 for B.
        op_idx: u32,
        /// The encoding of the dot's result.
        parent: Arc<Encoding>,
        /// Elements contiguous along K in one 32-bit register group. Where the parent is blocked: 0, and each thread has all of K, or how many a lane
        /// has beside each other of the first operand of a product of the whole warp, which its lanes share out along K.
        k_width: u32,
    },
    /// The accumulator of `mma.sync` (version 2) or `wgmma` (version 3).
    NvidiaMma {
        /// 2 for `mma.sync.m16n8kX`, 3 for `wgmma.m64nNkX`.
        version_major: u32,
        /// Minor version (0).
        version_minor: u32,
        /// Warps per dimension.
        warps_per_cta: Vec<u32>,
        /// Instruction shape: `[16, 8]` for version 2, `[16, N, K]` for version 3.
        instr_shape: Vec<u32>,
    },
    /// A shared-memory buffer.
    Shared(SharedKind),
    /// A layout given directly by its bases, for what no other encoding expresses.
    /// Each basis is a coordinate vector (one entry per tensor dimension).
    Linear {
        /// Bases of the `register` input dimension.
        register: Vec<Vec<u32>>,
        /// Bases of the `lane` input dimension.
        lane: Vec<Vec<u32>>,
        /// Bases of the `warp` input dimension.
        warp: Vec<Vec<u32>>,
        /// Bases of the `block` input dimension.
        block: Vec<Vec<u32>>,
    },
}

/// How a shared-memory buffer is arranged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SharedKind {
    /// Rows XOR-swizzled in groups of `vec` elements: group index ^= (row / per_phase) % max_phase.
    Swizzled {
        /// Elements that stay contiguous.
        vec: u32,
        /// Rows that share one phase.
        per_phase: u32,
        /// Number of phases (1 = no swizzle).
        max_phase: u32,
        /// Dimensions from the fastest-varying to the slowest.
        order: Vec<u32>,
    },
    /// The 32/64/128-byte swizzle that TMA and `wgmma` descriptors understand.
    NvmmaShared {
        /// 0, 32, 64 or 128 bytes.
        swizzle_bytes: u32,
        /// Whether the buffer is stored transposed (column-major).
        transposed: bool,
        /// Bits of an element.
        element_bits: u32,
        /// Rank of the buffer's view (leading dimensions are plain).
        rank: u32,
    },
    /// Row-major with `pad` elements inserted after every `interval` elements.
    Padded {
        /// Elements between paddings.
        interval: u32,
        /// Elements inserted.
        pad: u32,
        /// Dimensions from the fastest-varying to the slowest.
        order: Vec<u32>,
    },
}

impl Encoding {
    /// Whether it says which warp has an element, and of lanes nothing: [`WarpBlocked`](Encoding::WarpBlocked), or a slice of such, or an
    /// operand of a dot whose result is one.
    pub fn is_of_warps(&self) -> bool {
        match self {
            Encoding::WarpBlocked { .. } => true,
            Encoding::Slice { parent, .. } | Encoding::DotOperand { parent, .. } => parent.is_of_warps(),
            _ => false,
        }
    }
}

impl SharedKind {
    /// How a view lies whose dimension i is dimension `order[i]` of a buffer that lies like this. `None` where no layout says it.
    pub fn permuted(&self, order: &[u32]) -> Option<SharedKind> {
        let moved = |fast: &[u32]| -> Option<Vec<u32>> {
            fast.iter().map(|&d| Some(order.iter().position(|&o| o == d)? as u32)).collect()
        };
        Some(match self {
            SharedKind::Swizzled { vec, per_phase, max_phase, order } => SharedKind::Swizzled {
                vec: *vec,
                per_phase: *per_phase,
                max_phase: *max_phase,
                order: moved(order)?,
            },
            SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank } if *order == [1, 0] => {
                SharedKind::NvmmaShared {
                    swizzle_bytes: *swizzle_bytes,
                    transposed: !transposed,
                    element_bits: *element_bits,
                    rank: *rank,
                }
            }
            SharedKind::Padded { interval, pad, order } => {
                SharedKind::Padded { interval: *interval, pad: *pad, order: moved(order)? }
            }
            SharedKind::NvmmaShared { .. } => return None,
        })
    }
}
