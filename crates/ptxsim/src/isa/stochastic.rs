//! `cvt.rs`: conversions of two or four values at once, rounded by random bits, the last operand (§9.7.9.21). The first value stands at the top of the result.

use super::convert::{SATFINITE, relu};
use super::float::{FTZ, SAT};
use super::{Dec, Flow, Inst};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::LANES;

type R = Result<(), Error>;

/// A float of 6 or 8 bits: its format, its largest finite number and what is NaN.
struct Small(Format, u64, u64);

/// The types of which four are made. `e2m1x4` is not among them: which of its 16 bits is which is not said.
const FOUR: [(&str, Small); 4] = [
    ("e4m3x4", Small(Format { exp: 4, man: 3 }, 0x7e, 0x7f)),
    ("e5m2x4", Small(Format { exp: 5, man: 2 }, 0x7b, 0x7f)),
    ("e2m3x4", Small(Format { exp: 2, man: 3 }, 0x1f, 0x1f)),
    ("e3m2x4", Small(Format { exp: 3, man: 2 }, 0x1f, 0x1f)),
];

pub(super) fn cvt(d: &mut Dec) -> R {
    let names: [(&str, u32); 4] = std::array::from_fn(|k| (FOUR[k].0, k as u32));
    match d.one_of(&names) {
        Some(which) => four(d, which),
        None => two(d),
    }
}

/// The upper half of the last operand is the first value's.
fn two(d: &mut Dec) -> R {
    let (to, from) = (d.ty()?, d.ty()?);
    if from != Ty::F32 || !matches!(to, Ty::F16x2 | Ty::BF16x2) || d.out.flags & (FTZ | SAT) != 0 {
        return d.fail("`.rs` converts two `f32` to `f16x2` or `bf16x2`, or four to floats of 6 or 8 bits");
    }
    d.count(4..=4)?;
    d.out.d = d.dst_ty(0, to)?;
    (d.out.a, d.out.b, d.out.c) = (d.src(1, from)?, d.src(2, from)?, d.src(3, Ty::B32)?);
    fn run(cx: &mut Cx<'_>, i: &Inst, format: Format, bits: u32) -> Flow {
        cx.map3(i, |a: u32, b: u32, random: u32| {
            let one = |x: u32, random: u32| {
                let x = relu(i, f32::from_bits(x).into());
                format.encode_stochastic(x, random, bits, i.flags & SATFINITE != 0) as u32
            };
            one(a, random >> 16) << 16 | one(b, random)
        })
    }
    d.out.class = crate::report::Class::Convert;
    d.out.exec = if to == Ty::F16x2 { |cx, i| run(cx, i, F16, 13) } else { |cx, i| run(cx, i, BF16, 16) };
    Ok(())
}

/// The upper half of the last operand rounds the first two values, the lower half the others. The ISA does not say which bits of a half each of its two
/// takes: both take all of it, the first from its lowest bit on, as was measured for `e4m3x4` on GPUs that have it (sm_100a).
fn four(d: &mut Dec, which: u32) -> R {
    let from = d.ty()?;
    if from != Ty::F32 || d.out.flags & SATFINITE == 0 || d.out.flags & (FTZ | SAT) != 0 {
        return d.fail("`.rs` converts four `f32`, with `.satfinite`");
    }
    d.count(3..=3)?;
    let Operand::Vector(sources) = d.operand(1)?.clone() else {
        return d.fail("the four values stand in braces");
    };
    if sources.len() != 4 {
        return d.fail("four values are wanted");
    }
    d.out.d = d.dst_ty(0, Ty::B32)?;
    d.out.c = d.src(2, Ty::B32)?;
    d.out.list = sources.iter().map(|o| d.src_op(o, from)).collect::<Result<_, _>>()?;
    d.out.imm = which.into();
    d.out.class = crate::report::Class::Convert;
    d.out.exec = |cx, i| {
        let (_, Small(format, largest, nan)) = &FOUR[i.imm as usize];
        let one = |x: u32, random: u16| {
            let x = relu(i, f32::from_bits(x).into());
            if x.is_nan() {
                return *nan as u32;
            }
            let sign = u32::from(x.is_sign_negative()) << (format.exp + format.man);
            sign | format.stochastic_magnitude(x.abs(), random.into(), 16).min(*largest) as u32
        };
        let values: Vec<[u32; LANES]> = i.list.iter().map(|&r| cx.get::<u32>(r)).collect();
        let random = cx.get::<u32>(i.c);
        let all = std::array::from_fn(|l| {
            let (upper, lower) = ((random[l] >> 16) as u16, random[l] as u16);
            let bits = [upper.reverse_bits(), upper, lower.reverse_bits(), lower];
            values.iter().zip(bits).fold(0, |all, (x, bits)| all << 8 | one(x[l], bits))
        });
        cx.put(i.d, &all);
        Flow::Next
    };
    Ok(())
}
