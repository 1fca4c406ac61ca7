//! Warp-group matrix multiply (§9.7.15).
//!
//! Each warp of the group owns 16 of the 64 rows, so the four need nothing of each other: a warp computes its rows
//! when it executes the instruction. Results are in the registers at once, but the registers count as unwritten until
//! `wgmma.wait_group`, so that a read before it is reported. Shared memory is read by the asynchronous proxy's agent
//! ([`super::bulk`]).

use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg};
use crate::report::FindingKind;
use crate::tensor_map::Swizzle;

type R = Result<(), Error>;

const TYPES: [Ty; 9] = [Ty::F16, Ty::BF16, Ty::TF32, Ty::E4M3, Ty::E5M2, Ty::S8, Ty::U8, Ty::F32, Ty::S32];

fn number(d: &Dec, t: Ty) -> Result<u32, Error> {
    TYPES.iter().position(|&x| x == t).map(|k| k as u32).ok_or_else(|| d.bad_type(t))
}

pub(super) fn fence(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(0..=0)?;
    d.out.exec = super::control::nop_exec;
    Ok(())
}

pub(super) fn commit(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        cx.w.wgmma_group += 1;
        Flow::Next
    };
    Ok(())
}

pub(super) fn wait(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(1..=1)?;
    let Operand::Int(n) = d.operand(0)? else { return d.fail("the number of groups must be a constant") };
    d.out.imm = *n as i64;
    d.out.exec = |cx, i| {
        let limit = cx.w.wgmma_group.saturating_sub(i.imm as u32);
        let w = &mut *cx.w;
        w.held.retain(|&(reg, group)| {
            if group < limit {
                w.init[reg as usize] = !0;
            }
            group >= limit
        });
        let agent = cx.unit.warps.len();
        let mut stamp = 0;
        cx.w.wgmma_reads.retain(|&(s, group)| {
            if group < limit {
                stamp = stamp.max(s);
            }
            group >= limit
        });
        if cx.grid.options.checks {
            let own = &mut cx.w.sync.clock.own;
            own[agent] = own[agent].max(stamp);
        }
        Flow::Next
    };
    Ok(())
}

/// `m64n128k16`.
fn shape(m: &str) -> Option<(u32, u32)> {
    let (n, k) = m.strip_prefix("m64n")?.split_once('k')?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

const A_REGS: u32 = 1;
const NEG_A: u32 = 2;
const NEG_B: u32 = 4;
const MN_A: u32 = 8;
const MN_B: u32 = 16;
const SATFINITE: u32 = 32;
const NOT_P: u32 = 64;

pub(super) fn mma(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    if d.has("sp") {
        return d.fail("not supported yet: sparse matrices");
    }
    let Some((n, k)) = d.take(shape) else { return d.fail("the shape is missing") };
    if d.has("satfinite") {
        d.out.flags |= SATFINITE;
    }
    let (dt, at, bt) = (d.ty()?, d.ty()?, d.ty()?);
    let want_k = match at {
        Ty::F16 | Ty::BF16 => 16,
        Ty::TF32 => 8,
        Ty::E4M3 | Ty::E5M2 | Ty::S8 | Ty::U8 => 32,
        _ => return Err(d.bad_type(at)),
    };
    let pair = match at {
        Ty::E4M3 | Ty::E5M2 => matches!(bt, Ty::E4M3 | Ty::E5M2) && matches!(dt, Ty::F32 | Ty::F16),
        Ty::S8 | Ty::U8 => matches!(bt, Ty::S8 | Ty::U8) && dt == Ty::S32,
        Ty::F16 => bt == at && matches!(dt, Ty::F32 | Ty::F16),
        _ => bt == at && dt == Ty::F32,
    };
    let n_ok = n % 8 == 0 && (8..=256).contains(&n) && (dt != Ty::S32 || n <= 24 || n % 16 == 0);
    if k != want_k || !pair || !n_ok {
        return d.fail("no such combination of shape and types");
    }
    let Operand::Vector(dv) = d.operand(0)? else {
        return d.fail("the accumulator must be a vector of registers");
    };
    let per_lane = n / 2;
    let want = if dt == Ty::F16 { per_lane / 2 } else { per_lane };
    if dv.len() as u32 != want {
        return d.fail(format!("the accumulator has {} registers where {want} are wanted", dv.len()));
    }
    let mut list = vec![number(d, dt)?, number(d, at)?, number(d, bt)?, want];
    for o in dv {
        let r = d.dst_op(o, File::W)?;
        d.held.push(Reg { file: File::W, idx: r });
        list.push(r);
    }
    match d.operand(1)? {
        Operand::Vector(a) => {
            if a.len() != 4 {
                return d.fail("A in registers has four of them");
            }
            d.out.flags |= A_REGS;
            for o in a {
                list.push(d.src_op(o, Ty::B32)?);
            }
        }
        _ => list.push(d.src(1, Ty::B64)?),
    }
    list.push(d.src(2, Ty::B64)?);
    // scale-d, then the signs of A and B, then their transpositions for 16-bit types.
    let (p, neg) = d.pred(3)?;
    d.out.c = p;
    if neg {
        d.out.flags |= NOT_P;
    }
    let imm = |d: &Dec, k: usize| match d.operand(k)? {
        Operand::Int(v) => Ok(*v as i64),
        _ => d.fail(format!("operand {} must be a constant", k + 1)),
    };
    let count = d.ins.operands.len();
    let mut at_op = 4;
    if dt != Ty::S32 {
        for (k, f) in [(4, NEG_A), (5, NEG_B)] {
            match imm(d, k)? {
                1 => {}
                -1 => d.out.flags |= f,
                v => return d.fail(format!("a scale of {v}: it must be 1 or -1")),
            }
        }
        at_op = 6;
    }
    if matches!(at, Ty::F16 | Ty::BF16) {
        let flags: &[u32] = if d.out.flags & A_REGS != 0 { &[MN_B] } else { &[MN_A, MN_B] };
        for f in flags {
            if imm(d, at_op)? != 0 {
                d.out.flags |= f;
            }
            at_op += 1;
        }
    }
    if count != at_op {
        return d.fail(format!("{count} operands where {at_op} are wanted"));
    }
    d.out.list = list.into();
    (d.out.a, d.out.b) = (n, k);
    d.out.exec = exec;
    Ok(())
}

/// A matrix descriptor (§9.7.15.5.1.2.2).
#[derive(Clone, Copy, Debug)]
struct Desc {
    start: u32,
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
    /// Bytes across a row of the swizzle atom.
    width: u32,
}

impl Desc {
    fn new(b: u64) -> Desc {
        let f = |s: u32| ((b >> s & 0x3fff) << 4) as u32;
        let (swizzle, width) = match b >> 62 {
            0 => (Swizzle::None, 16),
            1 => (Swizzle::B128, 128),
            2 => (Swizzle::B64, 64),
            _ => (Swizzle::B32, 32),
        };
        Desc { start: f(0), leading: f(16), stride: f(32), swizzle, width }
    }

    /// Address of element (`mn`, `k`) of `es` bytes.
    fn at(&self, mn: u32, k: u32, es: u32, mn_major: bool) -> u32 {
        let off = if mn_major {
            let atom = self.width / es;
            let (outer, deep) = if self.swizzle == Swizzle::None {
                (self.stride, self.leading)
            } else {
                (self.leading, self.stride)
            };
            mn % atom * es + mn / atom * outer + k % 8 * self.width + k / 8 * deep
        } else {
            let kb = k * es;
            let chunk = if self.swizzle == Swizzle::None { kb / 16 * self.leading + kb % 16 } else { kb };
            mn % 8 * self.width + mn / 8 * self.stride + chunk
        };
        self.swizzle.apply(self.start.wrapping_add(off))
    }
}

fn element(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F16 => f16_to_f32(bits as u16).into(),
        Ty::BF16 => bf16_to_f32(bits as u16).into(),
        Ty::TF32 => f32::from_bits(bits as u32 & 0xffff_e000).into(),
        Ty::E4M3 => e4m3_decode(bits as u8),
        Ty::E5M2 => e5m2_decode(bits as u8),
        Ty::S8 => (bits as i8).into(),
        _ => (bits as u8).into(),
    }
}

/// Reads a matrix by its descriptor: `out[k][mn]`.
fn fetch(
    cx: &mut Cx<'_>,
    desc: u64,
    what: &str,
    rows: std::ops::Range<u32>,
    k: u32,
    ty: Ty,
    mn_major: bool,
    stamp: u32,
) -> Option<Vec<Vec<f64>>> {
    let es = ty.bytes();
    let dsc = Desc::new(desc);
    let rank = cx.unit.ctas[cx.w.cta].rank;
    let size = cx.grid.shared_bytes;
    let mut out = vec![vec![0f64; rows.len()]; k as usize];
    let mut touched: Vec<u32> = vec![];
    for x in 0..k {
        for (j, r) in rows.clone().enumerate() {
            let a = dsc.at(r, x, es, mn_major);
            if u64::from(a) + u64::from(es) > size.into() {
                let m = format!(
                    "matrix {what}: element ({r}, {x}) is at shared offset {a}, outside the window of {size} bytes: {dsc:?}"
                );
                cx.find(FindingKind::Descriptor, 0, Some(a.into()), m);
                return None;
            }
            if touched.last() != Some(&(a & !15)) {
                touched.push(a & !15);
            }
            let v = crate::access::read_bytes(&cx.unit.ctas[rank as usize].shared, a as usize, es);
            out[x as usize][j] = element(ty, v);
        }
    }
    if cx.grid.options.checks {
        touched.sort_unstable();
        touched.dedup();
        // Neighbouring pieces go together.
        let mut s = 0;
        while s < touched.len() {
            let mut e = s + 1;
            while e < touched.len() && touched[e] == touched[e - 1] + 16 {
                e += 1;
            }
            let n = (touched[e - 1] - touched[s] + 16).min(size - touched[s]);
            crate::shadow::agent_read(cx, 0, (rank, touched[s]), n, stamp);
            s = e;
        }
    }
    Some(out)
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if cx.mask != !0 {
        if cx.w.live == !0 {
            cx.need = !0;
            return Flow::Gather;
        }
        cx.find(
            FindingKind::WarpSync,
            0,
            None,
            "a warp-group instruction needs all threads of its warps".into(),
        );
        return Flow::Stop;
    }
    let (n, k) = (i.a, i.b);
    let (dt, at, bt) = (TYPES[i.list[0] as usize], TYPES[i.list[1] as usize], TYPES[i.list[2] as usize]);
    let nd = i.list[3] as usize;
    let rd = &i.list[4..4 + nd];
    let ra = &i.list[4 + nd..];
    cx.unit.agent += 1;
    let stamp = cx.unit.agent;
    // A: 16 rows of this warp, `a[k][row]`.
    let a = if i.flags & A_REGS != 0 {
        let per = 32 / at.bits();
        let mut a = vec![vec![0f64; 16]; k as usize];
        for (r, &reg) in ra[..4].iter().enumerate() {
            let v = cx.get::<u32>(reg);
            for (l, v) in v.iter().enumerate() {
                for e in 0..per {
                    let (g, t) = (l as u32 >> 2, l as u32 & 3);
                    let row = g + 8 * (r as u32 & 1);
                    let col = t * per + e + (r as u32 >> 1) * 4 * per;
                    let bits = u64::from(*v) >> (at.bits() * e);
                    a[col as usize][row as usize] = element(at, bits);
                }
            }
        }
        a
    } else {
        let first = cx.w.id % 4 * 16;
        let desc = cx.w.regs.d[ra[0] as usize][0];
        match fetch(cx, desc, "A", first..first + 16, k, at, i.flags & MN_A != 0, stamp) {
            Some(a) => a,
            None => return Flow::Next,
        }
    };
    let bd = cx.w.regs.d[ra[if i.flags & A_REGS != 0 { 4 } else { 1 }] as usize][0];
    let Some(b) = fetch(cx, bd, "B", 0..n, k, bt, i.flags & MN_B != 0, stamp) else { return Flow::Next };
    let group = cx.w.wgmma_group;
    cx.w.wgmma_reads.push((stamp, group));
    let keep = cx.pred(i.c, i.flags & NOT_P != 0) & 1 != 0;
    let sign = if (i.flags & NEG_A != 0) != (i.flags & NEG_B != 0) { -1.0 } else { 1.0 };
    let mut acc = vec![vec![0f64; n as usize]; 16];
    for (row, acc) in acc.iter_mut().enumerate() {
        for (a, b) in a.iter().zip(&b) {
            let x = a[row] * sign;
            for (s, y) in acc.iter_mut().zip(b) {
                *s += x * y;
            }
        }
    }
    for c in 0..n as usize / 8 {
        for h in 0..2 {
            let place = |l: usize, e: usize| ((l >> 2) + 8 * h, 8 * c + (l & 3) * 2 + e);
            if dt == Ty::F16 {
                let reg = rd[2 * c + h];
                let old = cx.get::<u32>(reg);
                let r: [u32; LANES] = std::array::from_fn(|l| {
                    (0..2).fold(0, |r, e| {
                        let (row, col) = place(l, e);
                        let o = if keep { f16_to_f32((old[l] >> (16 * e)) as u16).into() } else { 0.0 };
                        r | (F16.encode(o + acc[row][col], Round::Rn, false) as u32) << (16 * e)
                    })
                });
                cx.put(reg, &r);
                continue;
            }
            for e in 0..2 {
                let reg = rd[4 * c + 2 * h + e];
                let old = cx.get::<u32>(reg);
                let r: [u32; LANES] = std::array::from_fn(|l| {
                    let (row, col) = place(l, e);
                    if dt == Ty::S32 {
                        let v = acc[row][col] as i64 + if keep { i64::from(old[l] as i32) } else { 0 };
                        return if i.flags & SATFINITE != 0 {
                            v.clamp(i32::MIN.into(), i32::MAX.into()) as u32
                        } else {
                            v as u32
                        };
                    }
                    let o = if keep { f64::from(f32::from_bits(old[l])) } else { 0.0 };
                    canon32((o + acc[row][col]) as f32)
                });
                cx.put(reg, &r);
            }
        }
    }
    // Nobody may read the accumulator until the group is waited for.
    if let Some(u) = &i.uninit {
        for &h in &u.hold {
            cx.w.init[h as usize] = 0;
            match cx.w.held.iter_mut().find(|x| x.0 == h) {
                Some(x) => x.1 = group,
                None => cx.w.held.push((h, group)),
            }
        }
    }
    debug_assert!(i.c != NONE);
    Flow::Next
}
