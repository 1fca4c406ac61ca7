//! `cvt` from and to pairs of floats of 4 and 6 bits, and of exponents alone (§9.7.9.21): the elements and scales of
//! microscaling formats. The second source, or the lower half of one, is in the lower half of the result.

use super::convert::{SATFINITE, f64_to_f16, relu};
use super::float::RELU;
use super::{Dec, Flow, Inst};
use crate::Error;
use crate::ast::Ty;
use crate::fp::*;
use crate::machine::Cx;

type R = Result<(), Error>;

/// Bits of exponent and fraction of a float that has no infinity and no NaN.
type Widths = (u32, u32);

const E2M1: Widths = (2, 1);
const E2M3: Widths = (2, 3);
const E3M2: Widths = (3, 2);

/// To nearest even; what is too large is the largest number, NaN the largest positive one.
fn encode(x: f64, (exp, man): Widths) -> u8 {
    let largest = (1 << (exp + man)) - 1;
    if x.is_nan() {
        return largest as u8;
    }
    let sign = u64::from(x.is_sign_negative()) << (exp + man);
    (sign | Format { exp, man }.magnitude(x.abs(), false, Round::Rn).min(largest)) as u8
}

fn decode(bits: u8, (exp, man): Widths) -> f64 {
    let e = i32::from(bits >> man) & ((1 << exp) - 1);
    let m = f64::from(bits & ((1 << man) - 1));
    let least = 2 - (1 << (exp - 1)) - man as i32;
    let v = if e == 0 { m * 2f64.powi(least) } else { (m + f64::from(1 << man)) * 2f64.powi(e - 1 + least) };
    if bits >> (exp + man) & 1 != 0 { -v } else { v }
}

/// The power of two of a magnitude: the exponent of an fp32, and 0 for 2^-127 and what is less. NaN is all ones, and so is what is too
/// large, unless `finite`. There is no sign.
fn encode_exponent(x: f32, up: bool, finite: bool) -> u8 {
    if x.is_nan() {
        return 0xff;
    }
    let bits = x.to_bits() & 0x7fff_ffff;
    let (exponent, fraction) = (bits >> 23, bits & 0x7f_ffff);
    let above = if exponent == 0 { fraction > 1 << 22 } else { fraction != 0 && exponent != 0xff };
    (exponent + u32::from(up && above)).min(if finite { 0xfe } else { 0xff }) as u8
}

/// As `bf16`: 2^-127 is below its normal numbers.
fn decode_exponent(bits: u8) -> u32 {
    match bits {
        0 => 0x40,
        0xff => 0x7fff,
        _ => u32::from(bits) << 7,
    }
}

fn widths(t: Ty) -> Widths {
    match t {
        Ty::E2M1x2 => E2M1,
        Ty::E2M3x2 => E2M3,
        _ => E3M2,
    }
}

fn narrow(cx: &mut Cx<'_>, i: &Inst, to: Ty) -> Flow {
    let element = |x: u32| u16::from(encode(relu(i, f32::from_bits(x).into()), widths(to)));
    cx.map2(i, |a, b| element(a) << (to.bits() / 2) | element(b))
}

fn widen(cx: &mut Cx<'_>, i: &Inst, from: Ty) -> Flow {
    let element = |x: u16| u32::from(f64_to_f16(relu(i, decode(x as u8, widths(from)))));
    let half = from.bits() / 2;
    cx.map1(i, |a: u16| element(a & ((1 << half) - 1)) | element(a >> half) << 16)
}

fn exponents(i: &Inst, a: u32, b: u32) -> u16 {
    let up = matches!(Round::from_bits(i.flags), Round::Rp);
    let element = |x: u32| u16::from(encode_exponent(f32::from_bits(x), up, i.flags & SATFINITE != 0));
    element(a) << 8 | element(b)
}

/// The conversions in which one of the types is a pair of these.
pub(super) fn cvt(d: &mut Dec, to: Ty, from: Ty, rounding: Option<u32>) -> R {
    let (rounding, flags) = (rounding.map(Round::from_bits), d.out.flags & !7);
    let (modes, wanted, allowed) = match (to, from) {
        (Ty::UE8M0x2, _) => (&[Round::Rz, Round::Rp][..], 0, SATFINITE),
        (Ty::BF16x2, _) => (&[Round::Rn][..], 0, 0),
        (Ty::F16x2, _) => (&[Round::Rn][..], 0, RELU),
        _ => (&[Round::Rn][..], SATFINITE, SATFINITE | RELU),
    };
    if !rounding.is_some_and(|r| modes.contains(&r)) || flags & !allowed != 0 || flags & wanted != wanted {
        return d.fail("these types do not take these modifiers");
    }
    d.count(if from == Ty::F32 { 3..=3 } else { 2..=2 })?;
    d.out.d = d.dst_ty(0, to)?;
    d.out.a = d.src(1, from)?;
    if from == Ty::F32 {
        d.out.b = d.src(2, from)?;
    }
    d.out.exec = match (to, from) {
        (Ty::UE8M0x2, Ty::F32) => |cx, i| cx.map2(i, |a, b| exponents(i, a, b)),
        (Ty::UE8M0x2, Ty::BF16x2) => |cx, i| cx.map1(i, |a: u32| exponents(i, a & 0xffff_0000, a << 16)),
        (Ty::BF16x2, Ty::UE8M0x2) => {
            |cx, i| cx.map1(i, |a: u16| decode_exponent((a >> 8) as u8) << 16 | decode_exponent(a as u8))
        }
        (Ty::E2M1x2, Ty::F32) => |cx, i| narrow(cx, i, Ty::E2M1x2),
        (Ty::E2M3x2, Ty::F32) => |cx, i| narrow(cx, i, Ty::E2M3x2),
        (Ty::E3M2x2, Ty::F32) => |cx, i| narrow(cx, i, Ty::E3M2x2),
        (Ty::F16x2, Ty::E2M1x2) => |cx, i| widen(cx, i, Ty::E2M1x2),
        (Ty::F16x2, Ty::E2M3x2) => |cx, i| widen(cx, i, Ty::E2M3x2),
        (Ty::F16x2, Ty::E3M2x2) => |cx, i| widen(cx, i, Ty::E3M2x2),
        _ => return d.fail("not supported yet: this conversion"),
    };
    Ok(())
}
