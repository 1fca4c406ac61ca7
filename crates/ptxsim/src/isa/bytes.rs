//! Which bytes of its operands each byte of a result is made of, for instructions that move bytes or compute in halves.
//!
//! A code generator leaves bytes undefined that nobody will look at: it multiplies a pair of halves to have one product, and
//! inserts bytes into a register of which a permutation takes the others. Following bytes tells them from what is used:
//!
//! ```text
//! mov.b32       %r1, {%h1, %h2};      // %h2 was never written
//! mul.f16x2     %r2, %r1, %r3;        // bytes 2 and 3 are undefined
//! prmt.b32      %r4, %r2, 0, 0x1010;  // and nobody takes them
//! ```

use super::{Dec, Sym};
use crate::ast::{Operand, Ty};
use crate::regs::{File, Reg};

/// For each byte of the result, the bytes of registers (of a predicate, its only part) that it depends on.
pub(crate) type Bytes = Vec<Vec<(Reg, u32)>>;

/// The bytes of the result of a decoded instruction, where more can be said than that all depends on all.
pub(super) fn bytes(d: &Dec) -> Option<Bytes> {
    let &[to] = &d.writes[..] else { return None };
    let size = to.file.bits() / 8;
    if size == 0 {
        return None;
    }
    let mods: Vec<&str> = d.ins.mods.iter().map(String::as_str).collect();
    let each = |of: &dyn Fn(u32) -> Vec<(Reg, u32)>| Some((0..size).map(of).collect());
    match (d.ins.op.as_str(), &mods[..]) {
        ("cvt", &[to, from]) => {
            let (to, from) = (integer(to)?, integer(from)?);
            let source = register(d, 1)?;
            let kept = to.bits().min(from.bits()) / 8;
            // What is above repeats the sign, or is zero.
            let sign = from.signed() || to.signed();
            each(&|k| {
                if k < kept {
                    vec![(source, k)]
                } else {
                    sign.then_some((source, kept - 1)).into_iter().collect()
                }
            })
        }
        ("prmt", &["b32"]) => {
            let selector = constant(d, 3)?;
            each(&|k| {
                let select = (selector >> (4 * k) & 7) as u32;
                byte(d, if select < 4 { 1 } else { 2 }, select % 4)
            })
        }
        ("bfi", _) => {
            let (at, len) = (constant(d, 3)? as u32 & 0xff, constant(d, 4)? as u32 & 0xff);
            let (from, end) = (at.min(8 * size), (at + len).min(8 * size));
            each(&|k| {
                let (first, last) = ((8 * k).max(from), (8 * k + 8).min(end));
                let mut parts = match first < last {
                    true => bits(d, 1, first - at, last - at),
                    false => vec![],
                };
                if first >= last || last - first < 8 {
                    parts.extend(byte(d, 2, k));
                }
                parts
            })
        }
        ("bfe", &[ty]) => {
            let (at, len) = (constant(d, 2)? as u32 & 0xff, constant(d, 3)? as u32 & 0xff);
            let (from, end) = (at.min(8 * size), (at + len).min(8 * size));
            let sign = integer(ty)?.signed() && len > 0;
            each(&|k| {
                let (first, last) = ((from + 8 * k).min(end), (from + 8 * k + 8).min(end));
                let mut parts = bits(d, 1, first, last);
                if sign && last - first < 8 {
                    parts.extend(byte(d, 1, (end.max(1) - 1) / 8));
                }
                parts
            })
        }
        ("shl", _) => {
            let by = u32::try_from(constant(d, 2)?).ok()?.min(8 * size);
            each(&|k| bits(d, 1, (8 * k).saturating_sub(by), (8 * k + 8).saturating_sub(by)))
        }
        ("shr", &[ty]) => {
            let by = u32::try_from(constant(d, 2)?).ok()?.min(8 * size);
            let sign = integer(ty)?.signed();
            each(&|k| {
                let (first, last) = ((8 * k + by).min(8 * size), (8 * k + 8 + by).min(8 * size));
                let mut parts = bits(d, 1, first, last);
                if sign && last - first < 8 {
                    parts.extend(byte(d, 1, size - 1));
                }
                parts
            })
        }
        ("and", &[ty]) if ty != "pred" => each(&|k| {
            let masked = |operand| constant(d, operand).is_some_and(|c| c >> (8 * k) & 0xff == 0);
            if masked(1) || masked(2) { vec![] } else { [byte(d, 1, k), byte(d, 2, k)].concat() }
        }),
        ("or" | "xor", &[ty]) if ty != "pred" => each(&|k| [byte(d, 1, k), byte(d, 2, k)].concat()),
        ("not", &[ty]) if ty != "pred" => each(&|k| byte(d, 1, k)),
        ("selp", _) => each(&|k| [byte(d, 1, k), byte(d, 2, k), byte(d, 3, 0)].concat()),
        // Two halves beside each other; a conversion makes them of whole registers.
        (op, mods)
            if op != "cvt" && mods.iter().any(|m| matches!(*m, "f16x2" | "bf16x2" | "s16x2" | "u16x2")) =>
        {
            let operands = || (1..d.ins.operands.len()).filter_map(|k| register(d, k));
            if to.file != File::W || operands().any(|r| r.file != File::W) {
                return None;
            }
            each(&|k| operands().flat_map(|r| [(r, k & 2), (r, k | 1)]).collect())
        }
        _ => None,
    }
}

fn integer(name: &str) -> Option<Ty> {
    Ty::parse(name).filter(|ty| !ty.float() && ty.bits() % 8 == 0)
}

fn constant(d: &Dec, operand: usize) -> Option<u64> {
    match d.ins.operands.get(operand)? {
        Operand::Int(value) => Some(*value),
        _ => None,
    }
}

/// The register that an operand is; none for constants and what is always written.
fn register(d: &Dec, operand: usize) -> Option<Reg> {
    match d.ins.operands.get(operand)? {
        Operand::Ident(name) => match d.env.lookup(name) {
            Some(Sym::Reg(r)) => Some(r),
            _ => None,
        },
        Operand::Component(name, part) => d.env.component(name, *part),
        _ => None,
    }
}

fn byte(d: &Dec, operand: usize, k: u32) -> Vec<(Reg, u32)> {
    register(d, operand).map(|r| (r, k)).into_iter().collect()
}

/// The bytes that hold the bits from `first` up to `last`.
fn bits(d: &Dec, operand: usize, first: u32, last: u32) -> Vec<(Reg, u32)> {
    match register(d, operand) {
        Some(r) if first < last => (first / 8..last.div_ceil(8)).map(|k| (r, k)).collect(),
        _ => vec![],
    }
}
