//! `cvt` between integers, floats and the packed small floats (§9.7.9.21).
//!
//! A value goes through `i128` or through an f64 that holds it exactly (or rounded to odd), so each conversion is
//! rounded once, with the mode given.

use super::float::{FTZ, RELU, SAT};
use super::{Dec, Flow, Inst, stochastic, tiny};
use crate::Error;
use crate::ast::Ty;
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg};

type R = Result<(), Error>;

/// Rounds to an integral value first.
const INTEGRAL: u32 = 1 << 10;
/// Overflow gives the largest finite value.
pub(super) const SATFINITE: u32 = 1 << 11;

/// Rounds by random bits.
const STOCHASTIC: u32 = 1 << 12;

/// `Ty` by number, to keep types in an instruction's registers list.
const TYPES: &[Ty] = &[
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::BF16,
    Ty::F32,
    Ty::F64,
    Ty::TF32,
    Ty::B8,
    Ty::B16,
    Ty::B32,
    Ty::B64,
];

fn number(d: &Dec, t: Ty) -> Result<u32, Error> {
    TYPES.iter().position(|&x| x == t).map(|k| k as u32).ok_or_else(|| d.bad_type(t))
}

const FILES: [File; 4] = [File::H, File::W, File::D, File::Q];

fn file_number(f: File) -> u32 {
    FILES.iter().position(|&x| x == f).unwrap_or(0) as u32
}

/// A value on its way.
#[derive(Clone, Copy)]
enum Val {
    I(i128),
    F(f64),
}

fn load(t: Ty, b: u64) -> Val {
    match t {
        Ty::U8 | Ty::B8 => Val::I((b as u8).into()),
        Ty::U16 | Ty::B16 => Val::I((b as u16).into()),
        Ty::U32 | Ty::B32 => Val::I((b as u32).into()),
        Ty::S8 => Val::I((b as i8).into()),
        Ty::S16 => Val::I((b as i16).into()),
        Ty::S32 => Val::I((b as i32).into()),
        Ty::S64 => Val::I((b as i64).into()),
        Ty::F16 => Val::F(f16_to_f32(b as u16).into()),
        Ty::BF16 => Val::F(bf16_to_f32(b as u16).into()),
        Ty::F32 | Ty::TF32 => Val::F(f32::from_bits(b as u32).into()),
        Ty::F64 => Val::F(f64::from_bits(b)),
        _ => Val::I(b.into()),
    }
}

fn integral(x: f64, m: Round) -> f64 {
    match m {
        Round::Rn => x.round_ties_even(),
        Round::Rna => x.round(),
        Round::Rz => x.trunc(),
        Round::Rm => x.floor(),
        Round::Rp => x.ceil(),
    }
}

/// An integer as f64, rounded to odd when it does not fit.
fn int_odd(v: i128) -> f64 {
    let r = v as f64;
    let err = v - r as i128;
    if err == 0 || r.to_bits() & 1 != 0 {
        return r;
    }
    let out = (err > 0) == (r > 0.0);
    f64::from_bits(if out { r.to_bits() + 1 } else { r.to_bits() - 1 })
}

fn int_range(t: Ty) -> (i128, i128) {
    let n = t.bits();
    if t.signed() { (-(1 << (n - 1)), (1 << (n - 1)) - 1) } else { (0, (1 << n) - 1) }
}

fn convert(i: &Inst, from: Ty, to: Ty, bits: u64) -> u64 {
    let mode = Round::from_bits(i.flags);
    let mut v = load(from, bits);
    if let Val::F(x) = &mut v {
        if i.flags & FTZ != 0 && from == Ty::F32 && x.abs() < f64::from(f32::MIN_POSITIVE) {
            *x = 0f64.copysign(*x);
        }
        if i.flags & INTEGRAL != 0 {
            *x = integral(*x, mode);
        }
    }
    if !to.float() {
        let (lo, hi) = int_range(to);
        let n = match v {
            Val::I(n) if i.flags & SAT != 0 => n.clamp(lo, hi),
            Val::I(n) => n,
            // Float to integer always clamps. NaN is zero, but for 64 bits on either side it is the top bit alone.
            Val::F(x) if x.is_nan() => {
                if from == Ty::F64 || to.bits() == 64 {
                    1 << (to.bits() - 1)
                } else {
                    0
                }
            }
            Val::F(x) => (x as i128).clamp(lo, hi),
        };
        // The value as the destination type, extended to the register.
        let s = 128 - to.bits();
        return if to.signed() { (n << s >> s) as u64 } else { ((n as u128) << s >> s) as u64 };
    }
    let x = match v {
        Val::F(x) => x,
        Val::I(n) if to == Ty::F64 => {
            let r = n as f64;
            let err = (n - r as i128) as f64;
            return direct64(r, err, mode).to_bits();
        }
        Val::I(n) => int_odd(n),
    };
    // NaN and −0 saturate to +0.
    let x = if i.flags & SAT == 0 {
        x
    } else if x > 0.0 {
        x.min(1.0)
    } else {
        0.0
    };
    let x = if i.flags & RELU != 0 && x <= 0.0 { 0.0 } else { x };
    // Integral rounding is done; what is left is exact or rounds as usual.
    let mode = if i.flags & INTEGRAL != 0 { Round::Rn } else { mode };
    let fin = i.flags & SATFINITE != 0;
    match to {
        Ty::F16 => F16.encode(x, mode, fin),
        Ty::BF16 => BF16.encode(x, mode, fin),
        // The hardware loses the lower bits of a NaN: with nothing left above it is infinity.
        Ty::TF32 if x.is_nan() && mode == Round::Rna && bits & 0x007f_e000 == 0 => {
            let sign = bits & 1 << 31;
            sign | if fin { 0x7f7f_e000 } else { 0x7f80_0000 }
        }
        Ty::TF32 => TF32.encode(x, mode, fin) << 13,
        Ty::F32 => {
            let r = F32.encode(x, mode, fin) as u32;
            if i.flags & FTZ != 0 { ftz32(f32::from_bits(r)).to_bits() } else { r }.into()
        }
        _ if x.is_nan() => 0x7fff_ffff_ffff_ffff,
        _ => x.to_bits(),
    }
}

pub(super) fn cvt(d: &mut Dec) -> R {
    let r = d.one_of(&[
        ("rn", Round::Rn as u32),
        ("rz", Round::Rz as u32),
        ("rm", Round::Rm as u32),
        ("rp", Round::Rp as u32),
        ("rna", Round::Rna as u32),
        ("rni", Round::Rn as u32 | INTEGRAL),
        ("rzi", Round::Rz as u32 | INTEGRAL),
        ("rmi", Round::Rm as u32 | INTEGRAL),
        ("rpi", Round::Rp as u32 | INTEGRAL),
        ("rs", STOCHASTIC),
    ]);
    d.out.flags = r.unwrap_or(0);
    for (m, f) in [("ftz", FTZ), ("sat", SAT), ("relu", RELU), ("satfinite", SATFINITE)] {
        if d.has(m) {
            d.out.flags |= f;
        }
    }
    if d.out.flags & STOCHASTIC != 0 {
        return stochastic::cvt(d);
    }
    let (to, from) = (d.ty()?, d.ty()?);
    if to.tiny() || from.tiny() {
        return tiny::cvt(d, to, from, r);
    }
    if matches!(to, Ty::F16x2 | Ty::BF16x2 | Ty::E4M3x2 | Ty::E5M2x2)
        || matches!(from, Ty::E4M3x2 | Ty::E5M2x2)
    {
        return packed(d, to, from);
    }
    if r.is_none() && !to.float() && from.float() {
        return d.fail("a conversion from float to integer needs a rounding modifier");
    }
    d.count(2..=2)?;
    let dst = d.operand(0)?;
    let dst = d.dst_reg(dst, File::of(to.bits()))?;
    let a = d.operand(1)?;
    let src = match d.source_reg(a)? {
        Some(r) => r,
        None => Reg { file: File::of(from.bits()), idx: d.src(1, from)? },
    };
    if dst.file == File::P
        || src.file == File::P
        || dst.file.bits() < to.bits()
        || src.file.bits() < from.bits()
    {
        return d.fail("a register is too narrow for its type");
    }
    d.out.d = dst.idx;
    d.out.a = src.idx;
    d.out.class = crate::report::Class::Convert;
    let simple = d.out.flags & !7 == 0;
    let same = dst.file.bits() == to.bits().max(16) && src.file.bits() == from.bits().max(16);
    // The conversions that kernels live on have loops of their own.
    if simple && same {
        let rn = d.out.flags == 0;
        let e: Option<super::Exec> = match (to, from) {
            (Ty::F32, Ty::F16) => Some(|cx, i| {
                cx.map1(i, |a: u16| {
                    let x = f16_to_f32(a);
                    canon32(x)
                })
            }),
            (Ty::F32, Ty::BF16) => Some(|cx, i| cx.map1(i, |a: u16| canon32(bf16_to_f32(a)))),
            (Ty::F16, Ty::F32) if rn => Some(|cx, i| cx.map1(i, |a: u32| f32_to_f16(f32::from_bits(a)))),
            (Ty::BF16, Ty::F32) if rn => Some(|cx, i| cx.map1(i, |a: u32| f32_to_bf16(f32::from_bits(a)))),
            (Ty::F32, Ty::S32) if rn => Some(|cx, i| cx.map1(i, |a: u32| (a as i32 as f32).to_bits())),
            (Ty::F32, Ty::U32) if rn => Some(|cx, i| cx.map1(i, |a: u32| (a as f32).to_bits())),
            (Ty::F64, Ty::F32) => Some(|cx, i| cx.map1(i, |a: u32| f64::from(f32::from_bits(a)).to_bits())),
            (Ty::S64 | Ty::U64, Ty::S32) => Some(|cx, i| cx.map1(i, |a: u32| a as i32 as i64 as u64)),
            (Ty::S64 | Ty::U64, Ty::U32) => Some(|cx, i| cx.map1(i, |a: u32| u64::from(a))),
            (Ty::S32 | Ty::U32, Ty::S64 | Ty::U64) => Some(|cx, i| cx.map1(i, |a: u64| a as u32)),
            (Ty::S32 | Ty::U32, Ty::U16) => Some(|cx, i| cx.map1(i, |a: u16| u32::from(a))),
            (Ty::S32 | Ty::U32, Ty::S16) => Some(|cx, i| cx.map1(i, |a: u16| a as i16 as u32)),
            (Ty::S16 | Ty::U16, Ty::S32 | Ty::U32) => Some(|cx, i| cx.map1(i, |a: u32| a as u16)),
            _ => None,
        };
        if let Some(e) = e {
            d.out.exec = e;
            return Ok(());
        }
    }
    d.out.list = [number(d, to)?, number(d, from)?, file_number(dst.file), file_number(src.file)].into();
    d.out.exec = |cx, i| {
        let (to, from) = (TYPES[i.list[0] as usize], TYPES[i.list[1] as usize]);
        let (df, sf) = (FILES[i.list[2] as usize], FILES[i.list[3] as usize]);
        let a = cx.w.regs.wide(Reg { file: sf, idx: i.a });
        for l in crate::regs::lanes(cx.mask) {
            let v = convert(i, from, to, a[l]);
            cx.w.regs.set_lane(Reg { file: df, idx: i.d }, l, v);
        }
        Flow::Next
    };
    Ok(())
}

pub(super) fn flush(i: &Inst, x: u32) -> f32 {
    let x = f32::from_bits(x);
    if i.flags & FTZ != 0 { ftz32(x) } else { x }
}

pub(super) fn relu(i: &Inst, x: f64) -> f64 {
    if i.flags & RELU != 0 && x <= 0.0 { 0.0 } else { x }
}

fn small_encode(i: &Inst, x: f64, to: Ty) -> u32 {
    let x = relu(i, x);
    let mode = Round::from_bits(i.flags);
    match to {
        Ty::F16x2 => F16.encode(x, mode, i.flags & SATFINITE != 0) as u32,
        Ty::BF16x2 => BF16.encode(x, mode, i.flags & SATFINITE != 0) as u32,
        Ty::E4M3x2 => e4m3_encode(x).into(),
        _ => e5m2_encode(x).into(),
    }
}

/// Two values at once: the first source goes to the upper half.
fn packed(d: &mut Dec, to: Ty, from: Ty) -> R {
    d.out.d = d.dst_ty(0, to)?;
    if from == Ty::F32 {
        d.count(3..=3)?;
        d.out.a = d.src(1, from)?;
        d.out.b = d.src(2, from)?;
        fn two32(cx: &mut Cx<'_>, i: &Inst, to: Ty) -> Flow {
            cx.map2(i, |a, b| {
                small_encode(i, flush(i, a).into(), to) << 16 | small_encode(i, flush(i, b).into(), to)
            })
        }
        fn two16(cx: &mut Cx<'_>, i: &Inst, to: Ty) -> Flow {
            cx.map2(i, |a, b| {
                (small_encode(i, flush(i, a).into(), to) << 8 | small_encode(i, flush(i, b).into(), to))
                    as u16
            })
        }
        d.out.exec = match to {
            Ty::F16x2 if d.out.flags == 0 => |cx, i| {
                cx.map2(i, |a: u32, b: u32| {
                    u32::from(f32_to_f16(f32::from_bits(a))) << 16 | u32::from(f32_to_f16(f32::from_bits(b)))
                })
            },
            Ty::BF16x2 if d.out.flags == 0 => |cx, i| {
                cx.map2(i, |a: u32, b: u32| {
                    u32::from(f32_to_bf16(f32::from_bits(a))) << 16
                        | u32::from(f32_to_bf16(f32::from_bits(b)))
                })
            },
            Ty::F16x2 => |cx, i| two32(cx, i, Ty::F16x2),
            Ty::BF16x2 => |cx, i| two32(cx, i, Ty::BF16x2),
            Ty::E4M3x2 => |cx, i| two16(cx, i, Ty::E4M3x2),
            _ => |cx, i| two16(cx, i, Ty::E5M2x2),
        };
        return Ok(());
    }
    d.count(2..=2)?;
    d.out.a = d.src(1, from)?;
    d.out.exec = match (to, from) {
        (Ty::F16x2, Ty::E4M3x2) => |cx, i| {
            cx.map1(i, |a: u16| {
                let f = |b: u16| u32::from(f64_to_f16(relu(i, e4m3_decode(b as u8))));
                f(a) | f(a >> 8) << 16
            })
        },
        (Ty::F16x2, Ty::E5M2x2) => |cx, i| {
            cx.map1(i, |a: u16| {
                let f = |b: u16| u32::from(f64_to_f16(relu(i, e5m2_decode(b as u8))));
                f(a) | f(a >> 8) << 16
            })
        },
        (Ty::E4M3x2, Ty::F16x2) => |cx, i| cx.map1(i, |a: u32| from_f16x2(i, a, Ty::E4M3x2)),
        (Ty::E5M2x2, Ty::F16x2) => |cx, i| cx.map1(i, |a: u32| from_f16x2(i, a, Ty::E5M2x2)),
        _ => return d.fail("not supported yet: this conversion"),
    };
    Ok(())
}

pub(super) fn f64_to_f16(x: f64) -> u16 {
    F16.encode(x, Round::Rn, false) as u16
}

fn from_f16x2(i: &Inst, a: u32, to: Ty) -> u16 {
    let f = |h: u32| small_encode(i, f16_to_f32(h as u16).into(), to) as u16;
    f(a) | f(a >> 16) << 8
}

/// `cvt.pack.sat.to.s32 d, a, b{, c}` (§9.7.9.22).
pub(super) fn cvt_pack(d: &mut Dec) -> R {
    if !d.has("sat") {
        return d.fail("`.sat` is wanted");
    }
    // Types of 2 bits appear nowhere else.
    const TO: [(&str, (u32, bool)); 8] = [
        ("s2", (2, true)),
        ("u2", (2, false)),
        ("s4", (4, true)),
        ("u4", (4, false)),
        ("s8", (8, true)),
        ("u8", (8, false)),
        ("s16", (16, true)),
        ("u16", (16, false)),
    ];
    let Some((bits, signed)) = d.one_of(&TO) else { return d.fail("the type to pack is missing") };
    let from = d.ty()?;
    if from != Ty::S32 {
        return Err(d.bad_type(from));
    }
    d.count(3..=4)?;
    // With `.b32` at the end the packed value of c is kept above.
    if d.ins.operands.len() == 4 {
        d.ty()?;
        d.out.c = d.src(3, Ty::B32)?;
    }
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, from)?;
    d.out.b = d.src(2, from)?;
    d.out.flags = bits | u32::from(signed) << 8;
    d.out.exec = |cx, i| {
        let n = i.flags & 0xff;
        let c = if i.c == super::NONE { [0; LANES] } else { cx.get::<u32>(i.c) };
        let (lo, hi) = if i.flags >> 8 != 0 {
            (-(1i64 << (n - 1)), (1i64 << (n - 1)) - 1)
        } else {
            (0, (1i64 << n) - 1)
        };
        let (a, b) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b));
        let f = |x: u32| ((x as i32 as i64).clamp(lo, hi) as u64 & ((1 << n) - 1)) as u32;
        let r: [u32; LANES] =
            std::array::from_fn(|l| (u64::from(c[l]) << (2 * n)) as u32 | f(a[l]) << n | f(b[l]));
        cx.put(i.d, &r);
        Flow::Next
    };
    Ok(())
}
