//! Bits: logic, shifts, fields, permutes (§9.7.1.14–22, §9.7.8, §9.7.9.7).

use super::{Dec, Flow};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::regs::{File, LANES};

type R = Result<(), Error>;

macro_rules! logic {
    ($name:ident, $op:tt) => {
        pub(super) fn $name(d: &mut Dec) -> R {
            let ty = d.ty()?;
            if ty == Ty::Pred {
                d.count(3..=3)?;
                d.out.d = d.dst(0, File::P)?;
                let (a, na) = d.pred(1)?;
                let (b, nb) = d.pred(2)?;
                (d.out.a, d.out.b) = (a, b);
                d.out.flags = u32::from(na) | u32::from(nb) << 1;
                d.out.exec = |cx, i| {
                    let v = cx.pred(i.a, i.flags & 1 != 0) $op cx.pred(i.b, i.flags & 2 != 0);
                    cx.put_pred(i.d, v);
                    Flow::Next
                };
                return Ok(());
            }
            d.d_ab(ty)?;
            d.out.exec = match ty.bits() {
                16 => |cx, i| cx.map2(i, |a: u16, b: u16| a $op b),
                32 => |cx, i| cx.map2(i, |a: u32, b: u32| a $op b),
                64 => |cx, i| cx.map2(i, |a: u64, b: u64| a $op b),
                _ => return Err(d.bad_type(ty)),
            };
            Ok(())
        }
    };
}
logic!(and, &);
logic!(or, |);
logic!(xor, ^);

pub(super) fn not(d: &mut Dec) -> R {
    let ty = d.ty()?;
    if ty == Ty::Pred {
        d.count(2..=2)?;
        d.out.d = d.dst(0, File::P)?;
        let (a, n) = d.pred(1)?;
        d.out.a = a;
        d.out.flags = u32::from(!n);
        d.out.exec = |cx, i| {
            let v = cx.pred(i.a, i.flags & 1 != 0);
            cx.put_pred(i.d, v);
            Flow::Next
        };
        return Ok(());
    }
    d.d_a(ty)?;
    d.out.exec = match ty.bits() {
        16 => |cx, i| cx.map1(i, |a: u16| !a),
        32 => |cx, i| cx.map1(i, |a: u32| !a),
        64 => |cx, i| cx.map1(i, |a: u64| !a),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn cnot(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.d_a(ty)?;
    d.out.exec = match ty.bits() {
        16 => |cx, i| cx.map1(i, |a: u16| u16::from(a == 0)),
        32 => |cx, i| cx.map1(i, |a: u32| u32::from(a == 0)),
        64 => |cx, i| cx.map1(i, |a: u64| u64::from(a == 0)),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

fn imm(d: &Dec, k: usize) -> Result<u64, Error> {
    match d.operand(k)? {
        Operand::Int(v) => Ok(*v),
        _ => d.fail(format!("operand {} must be an integer constant", k + 1)),
    }
}

pub(super) fn lop3(d: &mut Dec) -> R {
    let bool_op = d.one_of(&[("or", 1u32), ("and", 2)]).unwrap_or(0);
    let ty = d.ty()?;
    let (dst, pred) = match d.operand(0)? {
        Operand::Pair(a, b) => (&**a, Some(&**b)),
        o => (o, None),
    };
    d.count(5..=6)?;
    d.out.d = d.dst_op(dst, File::W)?;
    if let Some(p) = pred {
        d.out.e = d.dst_op(p, File::P)?;
        let (q, n) = d.pred(5)?;
        d.out.list = [q, u32::from(n)].into();
    }
    for (k, slot) in [1, 2, 3].into_iter().enumerate() {
        let r = d.src(slot, ty)?;
        match k {
            0 => d.out.a = r,
            1 => d.out.b = r,
            _ => d.out.c = r,
        }
    }
    d.out.imm = imm(d, 4)? as i64;
    d.out.flags = bool_op;
    d.out.exec = |cx, i| {
        let (a, b, c) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b), cx.get::<u32>(i.c));
        let t = i.imm as u32;
        let mut r = [0u32; LANES];
        for k in 0..8u32 {
            if t >> k & 1 == 0 {
                continue;
            }
            for l in 0..LANES {
                let x = if k & 4 != 0 { a[l] } else { !a[l] };
                let y = if k & 2 != 0 { b[l] } else { !b[l] };
                let z = if k & 1 != 0 { c[l] } else { !c[l] };
                r[l] |= x & y & z;
            }
        }
        if i.flags != 0 {
            let nz = (0..LANES).fold(0, |m, l| m | u32::from(r[l] != 0) << l);
            let q = cx.pred(i.list[0], i.list[1] != 0);
            cx.put_pred(i.e, if i.flags == 1 { nz | q } else { nz & q });
        }
        cx.put(i.d, &r);
        Flow::Next
    };
    Ok(())
}

pub(super) fn shl(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(3..=3)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::U32)?;
    d.out.exec = match ty.bits() {
        16 => |cx, i| cx.map2(i, |a: u16, n: u32| if n > 15 { 0 } else { a << n }),
        32 => |cx, i| cx.map2(i, |a: u32, n: u32| if n > 31 { 0 } else { a << n }),
        64 => |cx, i| cx.map2(i, |a: u64, n: u32| if n > 63 { 0 } else { a << n }),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn shr(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(3..=3)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::U32)?;
    d.out.exec = match (ty.bits(), ty.signed()) {
        (16, false) => |cx, i| cx.map2(i, |a: u16, n: u32| if n > 15 { 0 } else { a >> n }),
        (32, false) => |cx, i| cx.map2(i, |a: u32, n: u32| if n > 31 { 0 } else { a >> n }),
        (64, false) => |cx, i| cx.map2(i, |a: u64, n: u32| if n > 63 { 0 } else { a >> n }),
        (16, true) => |cx, i| cx.map2(i, |a: u16, n: u32| ((a as i16) >> n.min(15)) as u16),
        (32, true) => |cx, i| cx.map2(i, |a: u32, n: u32| ((a as i32) >> n.min(31)) as u32),
        (64, true) => |cx, i| cx.map2(i, |a: u64, n: u32| ((a as i64) >> n.min(63)) as u64),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn shf(d: &mut Dec) -> R {
    let left = d.one_of(&[("l", true), ("r", false)]);
    let wrap = d.one_of(&[("wrap", true), ("clamp", false)]);
    let ty = d.ty()?;
    let (Some(left), Some(wrap)) = (left, wrap) else { return d.fail("direction or mode is missing") };
    if ty != Ty::B32 {
        return Err(d.bad_type(ty));
    }
    d.d_abc(ty)?;
    d.out.exec = match (left, wrap) {
        (true, true) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| {
                ((u64::from(b) << 32 | u64::from(a)) << (c & 31) >> 32) as u32
            })
        },
        (true, false) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| {
                ((u128::from(b) << 32 | u128::from(a)) << c.min(32) >> 32) as u32
            })
        },
        (false, true) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32)
        },
        (false, false) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32)
        },
    };
    Ok(())
}

pub(super) fn prmt(d: &mut Dec) -> R {
    let mode =
        d.one_of(&[("f4e", 1u32), ("b4e", 2), ("rc8", 3), ("ecl", 4), ("ecr", 5), ("rc16", 6)]).unwrap_or(0);
    let ty = d.ty()?;
    let mode = mode.max(
        d.one_of(&[("f4e", 1u32), ("b4e", 2), ("rc8", 3), ("ecl", 4), ("ecr", 5), ("rc16", 6)]).unwrap_or(0),
    );
    if ty != Ty::B32 {
        return Err(d.bad_type(ty));
    }
    d.count(4..=4)?;
    d.out.d = d.dst_ty(0, ty)?;
    // An operand of which a constant selects nothing is not read: it may be any register.
    let selects = |d: &mut Dec, operand: u64| {
        Ok(match d.operand(3)? {
            Operand::Int(c) if mode == 0 => (0..4).any(|k| c >> (4 * k + 2) & 1 == operand),
            _ => true,
        })
    };
    let reads = d.reads.len();
    d.out.a = d.src(1, ty)?;
    if !selects(d, 0)? {
        d.reads.truncate(reads);
    }
    let reads = d.reads.len();
    d.out.b = d.src(2, ty)?;
    if !selects(d, 1)? {
        d.reads.truncate(reads);
    }
    d.out.c = d.src(3, ty)?;
    d.out.flags = mode;
    d.out.exec = |cx, i| {
        let mode = i.flags;
        cx.map3(i, |a: u32, b: u32, c: u32| {
            let x = u64::from(b) << 32 | u64::from(a);
            let byte = |n: u32| (x >> (8 * (n & 7))) as u8;
            let mut r = 0u32;
            for k in 0..4u32 {
                let s = c & 3;
                let v = match mode {
                    0 => {
                        let sel = c >> (4 * k) & 15;
                        let v = byte(sel);
                        if sel & 8 != 0 { ((v as i8) >> 7) as u8 } else { v }
                    }
                    1 => byte(s + k),
                    2 => byte(s.wrapping_sub(k)),
                    3 => byte(s),
                    4 => byte(k.max(s)),
                    5 => byte(k.min(s)),
                    _ => byte((s & 1) * 2 + (k & 1)),
                };
                r |= u32::from(v) << (8 * k);
            }
            r
        })
    };
    Ok(())
}

pub(super) fn popc(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, ty)?;
    d.out.exec = match ty.bits() {
        32 => |cx, i| cx.map1(i, u32::count_ones),
        64 => |cx, i| cx.map1(i, u64::count_ones),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn clz(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, ty)?;
    d.out.exec = match ty.bits() {
        32 => |cx, i| cx.map1(i, u32::leading_zeros),
        64 => |cx, i| cx.map1(i, u64::leading_zeros),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn bfind(d: &mut Dec) -> R {
    let amount = d.has("shiftamt");
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, ty)?;
    d.out.flags = u32::from(amount);
    fn find(zeros: u32, bits: u32, amount: bool) -> u32 {
        match (zeros == bits, amount) {
            (true, _) => !0,
            (false, true) => zeros,
            (false, false) => bits - 1 - zeros,
        }
    }
    d.out.exec = match ty {
        Ty::U32 => |cx, i| cx.map1(i, |a: u32| find(a.leading_zeros(), 32, i.flags != 0)),
        Ty::U64 => |cx, i| cx.map1(i, |a: u64| find(a.leading_zeros(), 64, i.flags != 0)),
        Ty::S32 => |cx, i| {
            cx.map1(i, |a: u32| find((a ^ ((a as i32) >> 31) as u32).leading_zeros(), 32, i.flags != 0))
        },
        Ty::S64 => |cx, i| {
            cx.map1(i, |a: u64| find((a ^ ((a as i64) >> 63) as u64).leading_zeros(), 64, i.flags != 0))
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn fns(d: &mut Dec) -> R {
    d.ty()?;
    d.d_abc(Ty::B32)?;
    d.out.exec = |cx, i| {
        cx.map3(i, |mask: u32, base: u32, offset: u32| {
            let (off, base) = (offset as i32, base & 31);
            if off == 0 {
                return if mask >> base & 1 != 0 { base } else { !0 };
            }
            let mut left = off.unsigned_abs();
            let mut pos = base as i32;
            while (0..32).contains(&pos) {
                if mask >> pos & 1 != 0 {
                    left -= 1;
                    if left == 0 {
                        return pos as u32;
                    }
                }
                pos += off.signum();
            }
            !0
        })
    };
    Ok(())
}

pub(super) fn brev(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.d_a(ty)?;
    d.out.exec = match ty.bits() {
        32 => |cx, i| cx.map1(i, u32::reverse_bits),
        64 => |cx, i| cx.map1(i, u64::reverse_bits),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

/// A field of `a`, with the sign rule of §9.7.1.19.
fn extract(a: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let top = bits - 1;
    let sign = signed && len != 0 && a >> (pos + len - 1).min(top) & 1 != 0;
    let mut r = 0u64;
    for k in 0..bits {
        let bit = if k < len && pos + k <= top { a >> (pos + k) & 1 != 0 } else { sign };
        r |= u64::from(bit) << k;
    }
    r
}

pub(super) fn bfe(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(4..=4)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::U32)?;
    d.out.c = d.src(3, Ty::U32)?;
    d.out.exec = match ty {
        Ty::U32 => |cx, i| cx.map3(i, |a: u32, p, n| extract(a.into(), p, n, 32, false) as u32),
        Ty::S32 => |cx, i| cx.map3(i, |a: u32, p, n| extract(a.into(), p, n, 32, true) as u32),
        Ty::U64 => |cx, i| cx.map3(i, |a: u64, p, n| extract(a, p, n, 64, false)),
        Ty::S64 => |cx, i| cx.map3(i, |a: u64, p, n| extract(a, p, n, 64, true)),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

/// `len` ones from bit `pos`, in `bits` bits.
fn field(pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos >= bits || len == 0 {
        return 0;
    }
    let ones = if len >= 64 { !0 } else { (1u64 << len) - 1 };
    let m = ones << pos;
    if bits == 32 { m & 0xffff_ffff } else { m }
}

pub(super) fn bfi(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(5..=5)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    // LLVM packs bytes by inserting them into a register of which they are the only bits ever used. Which bits those are is
    // followed where constants say it (`bytes.rs`); elsewhere what the field goes into may be undefined.
    let reads = d.reads.len();
    d.out.b = d.src(2, ty)?;
    if !matches!((d.operand(3)?, d.operand(4)?), (Operand::Int(_), Operand::Int(_))) {
        d.reads.truncate(reads);
    }
    d.out.c = d.src(3, Ty::U32)?;
    d.out.e = d.src(4, Ty::U32)?;
    d.out.exec = match ty.bits() {
        32 => |cx, i| {
            let n = cx.get::<u32>(i.e);
            let (a, b, p) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b), cx.get::<u32>(i.c));
            let r = std::array::from_fn(|l| {
                let m = field(p[l], n[l], 32) as u32;
                b[l] & !m | a[l].checked_shl(p[l] & 0xff).unwrap_or(0) & m
            });
            cx.put::<u32>(i.d, &r);
            Flow::Next
        },
        64 => |cx, i| {
            let n = cx.get::<u32>(i.e);
            let (a, b, p) = (cx.get::<u64>(i.a), cx.get::<u64>(i.b), cx.get::<u32>(i.c));
            let r = std::array::from_fn(|l| {
                let m = field(p[l], n[l], 64);
                b[l] & !m | a[l].checked_shl(p[l] & 0xff).unwrap_or(0) & m
            });
            cx.put::<u64>(i.d, &r);
            Flow::Next
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn szext(d: &mut Dec) -> R {
    let wrap = d.one_of(&[("wrap", true), ("clamp", false)]).unwrap_or(false);
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.flags = u32::from(wrap) | u32::from(ty.signed()) << 1;
    d.out.exec = |cx, i| {
        let (wrap, signed) = (i.flags & 1 != 0, i.flags & 2 != 0);
        cx.map2(i, |a: u32, n: u32| {
            let n = if wrap { n & 31 } else { n };
            if n >= 32 {
                return a;
            }
            if n == 0 {
                return 0;
            }
            let s = 32 - n;
            if signed { ((a << s) as i32 >> s) as u32 } else { a << s >> s }
        })
    };
    Ok(())
}

pub(super) fn bmsk(d: &mut Dec) -> R {
    let wrap = d.one_of(&[("wrap", true), ("clamp", false)]).unwrap_or(false);
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.flags = u32::from(wrap);
    d.out.exec = |cx, i| {
        let wrap = i.flags != 0;
        cx.map2(i, |a: u32, n: u32| {
            let (p, n) = if wrap { (a & 31, n & 31) } else { (a, n) };
            if p >= 32 {
                return 0;
            }
            let ones = if n >= 32 { !0 } else { (1u32 << n) - 1 };
            ones << p
        })
    };
    Ok(())
}
