//! About how long the tensor cores and a warp's own arithmetic take, to weigh one against the other.

use tilewright_ir::dialect::{arith, tt, ttng};
use tilewright_ir::{Module, Op, Opcode};

/// Warps of a warp group.
pub const GROUP: u32 = 4;

/// About how many cycles a warp is busy with an operation: instructions, of which one issues in a cycle.
pub fn arithmetic(module: &Module, op: Op, num_warps: u32) -> u32 {
    let of = match module.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Reduce)) => module.operands(op)[0],
        Some(Opcode::Arith(arith::Kind::Constant) | Opcode::Tt(_) | Opcode::Ttg(_) | Opcode::Ttng(_)) => {
            return 0;
        }
        Some(_) => match module.results(op) {
            &[one] => one,
            _ => return 0,
        },
        None => return 0,
    };
    let ty = module.value_type(of);
    if !module.is_tensor(ty) {
        return 0;
    }
    let elements: u32 = module.shape(ty).unwrap_or(&[]).iter().product();
    // A scheduler's special function unit takes a quarter of a warp at a time, and the argument is scaled first.
    let weight = if matches!(module.opcode(op), Some(Opcode::Math(_))) { 8 } else { 1 };
    elements / (num_warps * 32) * weight
}

/// How many cycles the tensor cores need for one warp group's part of a dot: 64 rows times N times K at 2048 products of
/// 16-bit numbers a cycle (H100 whitepaper: 989 TFLOP/s on 132 multiprocessors).
pub fn tensor_cycles(module: &Module, dot: ttng::WarpGroupDot, num_warps: u32) -> u32 {
    let (result, b) = (module.value_type(dot.d(module)), module.value_type(dot.b(module)));
    let elements: u32 = module.shape(result).unwrap_or(&[]).iter().product();
    let k = module.shape(b).and_then(|s| s.first().copied()).unwrap_or(1);
    elements / (num_warps / GROUP).max(1) * k / 2048 * module.bits(b).max(8) / 16
}

/// Whether it pays to run arithmetic of one warp group beside products of this or another: it must be enough to matter, and not
/// so much that it is what all wait for. (Attention forward on an H100, 128×128, with its dots overlapped and in turns: D = 128, where
/// the arithmetic takes 0.9 of the products' time by this count, gains 4.6 %; D = 64, where it takes 1.7, loses 2.6 %.)
pub fn hides(arithmetic: u32, products: u32) -> bool {
    arithmetic >= products / 4 && arithmetic <= products + products / 4
}
