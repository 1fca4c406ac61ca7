//! Integer operations. All wrap; shifts by the width or more give 0 (or the sign, for an arithmetic right shift);
//! division by zero gives -1 and the dividend as remainder, as RISC-V defines it and NVIDIA GPUs do in practice.

use tilewright_ir::dialect::arith::{CmpIPredicate, Kind};

use super::{Kernel, kernel};
use crate::elem::Elem;

/// For each width, a kernel over signed `$s` or unsigned `$u` elements.
macro_rules! widths {
    ($elem:expr, |$T:ident, $U:ident| $k:expr) => {
        match $elem {
            Elem::I8 => {
                #[allow(dead_code)]
                type $T = i8;
                #[allow(dead_code)]
                type $U = u8;
                $k
            }
            Elem::I16 => {
                #[allow(dead_code)]
                type $T = i16;
                #[allow(dead_code)]
                type $U = u16;
                $k
            }
            Elem::I32 => {
                #[allow(dead_code)]
                type $T = i32;
                #[allow(dead_code)]
                type $U = u32;
                $k
            }
            Elem::I64 | Elem::Ptr => {
                #[allow(dead_code)]
                type $T = i64;
                #[allow(dead_code)]
                type $U = u64;
                $k
            }
            _ => return None,
        }
    };
}

/// The kernel of a binary `arith` operation on integers.
pub fn binary(op: Kind, elem: Elem) -> Option<Kernel> {
    if elem == Elem::I1 {
        return bool_binary(op);
    }
    Some(match op {
        Kind::Addi => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.wrapping_add(b))),
        Kind::Subi => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.wrapping_sub(b))),
        Kind::Muli => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.wrapping_mul(b))),
        Kind::Andi => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a & b)),
        Kind::Ori => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a | b)),
        Kind::Xori => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a ^ b)),
        Kind::Minsi => widths!(elem, |T, U| kernel!(T, T => T, |a, b| a.min(b))),
        Kind::Maxsi => widths!(elem, |T, U| kernel!(T, T => T, |a, b| a.max(b))),
        Kind::Minui => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.min(b))),
        Kind::Maxui => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.max(b))),
        Kind::Divsi => {
            widths!(elem, |T, U| kernel!(T, T => T, |a, b| if b == 0 { -1 } else { a.wrapping_div(b) }))
        }
        Kind::Divui => {
            widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.checked_div(b).unwrap_or(U::MAX)))
        }
        Kind::Remsi => {
            widths!(elem, |T, U| kernel!(T, T => T, |a, b| if b == 0 { a } else { a.wrapping_rem(b) }))
        }
        Kind::Remui => widths!(elem, |T, U| kernel!(U, U => U, |a, b| a.checked_rem(b).unwrap_or(a))),
        Kind::Ceildivsi => widths!(elem, |T, U| kernel!(T, T => T, |a, b| {
            if b == 0 {
                return -1;
            }
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if r != 0 && (r < 0) == (b < 0) { q.wrapping_add(1) } else { q }
        })),
        Kind::Ceildivui => widths!(elem, |T, U| kernel!(U, U => U, |a, b| {
            if b == 0 { U::MAX } else { a.div_ceil(b) }
        })),
        Kind::Floordivsi => widths!(elem, |T, U| kernel!(T, T => T, |a, b| {
            if b == 0 {
                return -1;
            }
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if r != 0 && (r < 0) != (b < 0) { q.wrapping_sub(1) } else { q }
        })),
        Kind::Shli => widths!(elem, |T, U| kernel!(U, U => U, |a, b| {
            if b >= U::BITS as U { 0 } else { a << b }
        })),
        Kind::Shrui => widths!(elem, |T, U| kernel!(U, U => U, |a, b| {
            if b >= U::BITS as U { 0 } else { a >> b }
        })),
        Kind::Shrsi => widths!(elem, |T, U| kernel!(T, U => T, |a, b| a >> b.min(U::BITS as U - 1))),
        _ => return None,
    })
}

/// On `i1`, arithmetic is modulo 2 and "true" is -1 where the operation is signed.
fn bool_binary(op: Kind) -> Option<Kernel> {
    Some(match op {
        Kind::Addi | Kind::Subi | Kind::Xori => kernel!(u8, u8 => u8, |a, b| a ^ b),
        Kind::Muli | Kind::Andi | Kind::Minui | Kind::Maxsi => kernel!(u8, u8 => u8, |a, b| a & b),
        Kind::Ori | Kind::Maxui | Kind::Minsi => kernel!(u8, u8 => u8, |a, b| a | b),
        _ => return None,
    })
}

/// Whether a binary operation divides.
pub fn divides(op: Kind) -> bool {
    use Kind::{Ceildivsi, Ceildivui, Divsi, Divui, Floordivsi, Remsi, Remui};
    matches!(op, Divsi | Divui | Remsi | Remui | Ceildivsi | Ceildivui | Floordivsi)
}

/// The kernel of `arith.cmpi`.
pub fn compare(predicate: CmpIPredicate, elem: Elem) -> Option<Kernel> {
    use CmpIPredicate as P;
    if elem == Elem::I1 {
        // Signed, true is -1: the order is the reverse of the unsigned one.
        return Some(match predicate {
            P::Eq => kernel!(u8, u8 => u8, |a, b| u8::from(a == b)),
            P::Ne => kernel!(u8, u8 => u8, |a, b| u8::from(a != b)),
            P::Ult | P::Sgt => kernel!(u8, u8 => u8, |a, b| u8::from(a < b)),
            P::Ule | P::Sge => kernel!(u8, u8 => u8, |a, b| u8::from(a <= b)),
            P::Ugt | P::Slt => kernel!(u8, u8 => u8, |a, b| u8::from(a > b)),
            P::Uge | P::Sle => kernel!(u8, u8 => u8, |a, b| u8::from(a >= b)),
        });
    }
    Some(match predicate {
        P::Eq => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a == b))),
        P::Ne => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a != b))),
        P::Slt => widths!(elem, |T, U| kernel!(T, T => u8, |a, b| u8::from(a < b))),
        P::Sle => widths!(elem, |T, U| kernel!(T, T => u8, |a, b| u8::from(a <= b))),
        P::Sgt => widths!(elem, |T, U| kernel!(T, T => u8, |a, b| u8::from(a > b))),
        P::Sge => widths!(elem, |T, U| kernel!(T, T => u8, |a, b| u8::from(a >= b))),
        P::Ult => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a < b))),
        P::Ule => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a <= b))),
        P::Ugt => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a > b))),
        P::Uge => widths!(elem, |T, U| kernel!(U, U => u8, |a, b| u8::from(a >= b))),
    })
}

/// |x|; the most negative value stays.
pub fn abs(elem: Elem) -> Option<Kernel> {
    Some(widths!(elem, |T, U| kernel!(T => T, |a| a.wrapping_abs())))
}

/// The upper half of the unsigned product.
pub fn mulhi_unsigned(elem: Elem) -> Option<Kernel> {
    Some(match elem {
        Elem::I32 => kernel!(u32, u32 => u32, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        Elem::I64 => kernel!(u64, u64 => u64, |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        _ => return None,
    })
}

/// Address plus offset in elements of `$size` bytes (an instruction's scale operand is third).
pub fn add_ptr(offset: Elem) -> Option<Kernel> {
    macro_rules! k {
        ($T:ty) => {
            kernel!(u64, $T, u64 => u64, |p, o, size| p.wrapping_add((o as i64 as u64).wrapping_mul(size)))
        };
    }
    Some(match offset {
        Elem::I8 => k!(i8),
        Elem::I16 => k!(i16),
        Elem::I32 => k!(i32),
        Elem::I64 => k!(i64),
        _ => return None,
    })
}
