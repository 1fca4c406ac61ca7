//! Layout algebra: linear layouts over F2, encodings, conversions and swizzles.
//!
//! An [`Encoding`] is what the IR prints on a tensor or buffer type; every question about it (who holds which
//! element, how wide a vector access may be, what a conversion costs) is answered by the linear layout that it maps to.
//!
//! In the order in which a code generator meets them: [`LinearLayout`] is the algebra, [`TileLayout`] the layout of a
//! tensor over the threads of a CTA, [`SharedLayout`] that of a buffer, [`SharedAccess`] the loads and stores between,
//! [`plan_conversion`] the way from one tile layout to another.
//!
//! The first crate of all: it uses none. [`tilewright_ir`](../tilewright_ir/index.html) holds encodings as attributes,
//! [`tilewright_passes`](../tilewright_passes/index.html) chooses them, and [`tilewright_lower`](../tilewright_lower/index.html) asks for registers and addresses.

mod access;
mod banks;
mod choose;
mod convert;
mod distribute;
mod encoding;
mod error;
pub mod f2;
mod linear;
mod matrix;
mod scan;
mod shared;
mod shuffle;
mod swizzle;
mod tile;
mod tma;
mod view;
mod warp;
mod wgmma;

pub use access::{Access, Offset, SharedAccess, ThreadOffset};
pub use banks::{BankCost, bank_cost, wavefronts};
pub use choose::{WarpSpread, mma_v2_warps_per_cta};
pub use convert::{
    ConversionOptions, ConversionPlan, SharedPlan, SharedRound, ShuffleUse, SyncScope, plan_conversion,
    plan_conversion_with,
};
pub use distribute::Coord;
pub use encoding::{Encoding, SharedKind};
pub use error::{LayoutError, Result};
pub use linear::{Dim, LinearLayout};
pub use matrix::{MatrixAccess, MatrixInstruction};
pub use scan::{AxisSpread, ScanOrder};
pub use shared::{Padding, SharedLayout, coordinates};
pub use shuffle::{LaneExpr, SelectStep, ShufflePlan, ShuffleRound, ThreadParity};
pub use swizzle::optimal_swizzle;
pub use tile::{Bounds, FreeMasks, RegisterFinder, TileLayout};
pub use tma::{TmaBlock, TmaCopy};
pub use view::{Place, plan_reshape, plan_transpose};
pub use warp::{WarpAxis, WarpPart};
pub use wgmma::WgmmaOperand;
