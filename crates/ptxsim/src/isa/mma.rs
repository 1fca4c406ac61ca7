//! Warp-wide matrix multiply and the matrix loads that feed it (§9.7.14.5).
//!
//! All `mma.sync` shapes share one fragment rule. With `g = lane / 4`, `t = lane % 4` and `E` elements in a register:
//! register `r` of A holds row `g` (`g + 8` when `r` is odd and there are 16 rows), columns `t·E + e` plus `4·E` for
//! each further pair of registers; B holds rows `t·E + e + 4·E·r` of column `g`; C and D hold row `g` (then `g + 8`)
//! and columns `2·t`, `2·t + 1`.
//!
//! Floating products are summed in f64 and rounded once at the end. The hardware truncates in places; see
//! `docs/numerics.md` for the bound that tests use.

use super::{Dec, Flow, Inst};
use crate::Error;
use crate::access::Kind;
use crate::ast::{Operand, Space, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg};
use crate::report::FindingKind;

type R = Result<(), Error>;

const SATFINITE: u32 = 1;
const XOR_POPC: u32 = 2;
const AND_POPC: u32 = 4;

const TYPES: [Ty; 13] = [
    Ty::F16,
    Ty::BF16,
    Ty::TF32,
    Ty::F32,
    Ty::F64,
    Ty::S8,
    Ty::U8,
    Ty::S4,
    Ty::U4,
    Ty::S32,
    Ty::E4M3,
    Ty::E5M2,
    Ty::B1,
];

fn number(d: &Dec, t: Ty) -> Result<u32, Error> {
    TYPES.iter().position(|&x| x == t).map(|k| k as u32).ok_or_else(|| d.bad_type(t))
}

/// `m16n8k16` → (16, 8, 16).
fn shape(m: &str) -> Option<(u32, u32, u32)> {
    let (m, rest) = m.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// Registers for `rows × cols` elements spread over a warp.
fn regs_of(elements: u32, ty: Ty) -> u32 {
    (elements / 32 * ty.bits().max(1)).div_ceil(if ty == Ty::F64 { 64 } else { 32 }).max(1)
}

fn width(ty: Ty) -> File {
    if ty == Ty::F64 { File::D } else { File::W }
}

pub(super) fn mma(d: &mut Dec) -> R {
    if !d.has("sync") {
        return d.fail("`.sync` is wanted");
    }
    d.has("aligned");
    let sparse = d.take(|m| m.starts_with("sp").then_some(())).is_some();
    if sparse {
        return d.fail("not supported yet: sparse matrices");
    }
    let Some((m, n, k)) = d.take(shape) else { return d.fail("the shape is missing") };
    let layouts = [d.one_of(&[("row", 0), ("col", 1)]), d.one_of(&[("row", 0), ("col", 1)])];
    if m == 8 && n == 8 && k == 4 && d.ins.mods.iter().any(|m| m == "f16") {
        return d.fail("not supported yet: the sm_70 shape m8n8k4 of f16");
    }
    if layouts.iter().flatten().sum::<i32>() != 1 {
        return d.fail("`.row.col` is wanted");
    }
    if d.has("satfinite") {
        d.out.flags |= SATFINITE;
    }
    d.take(|m| m.starts_with("kind::").then_some(()));
    // Double precision may name its rounding.
    let rounding = d.one_of(&[("rn", 0u32), ("rz", 1), ("rm", 2), ("rp", 3)]);
    let (dt, at, bt, ct) = (d.ty()?, d.ty()?, d.ty()?, d.ty()?);
    if d.has("xor") {
        d.out.flags |= XOR_POPC;
        d.has("popc");
    } else if d.has("and") {
        d.out.flags |= AND_POPC;
        d.has("popc");
    }
    // §9.7.14.5.1: the shapes of each type.
    let ok = match (at, bt) {
        (Ty::F16, Ty::F16) | (Ty::BF16, Ty::BF16) => m == 16 && n == 8 && matches!(k, 8 | 16),
        (Ty::TF32, Ty::TF32) => m == 16 && n == 8 && matches!(k, 4 | 8),
        (Ty::F64, Ty::F64) => n == 8 && (m == 8 && k == 4 || m == 16 && matches!(k, 4 | 8 | 16)),
        (Ty::S8 | Ty::U8, Ty::S8 | Ty::U8) => {
            n == 8 && (m == 8 && k == 16 || m == 16 && matches!(k, 16 | 32))
        }
        (Ty::S4 | Ty::U4, Ty::S4 | Ty::U4) => {
            n == 8 && (m == 8 && k == 32 || m == 16 && matches!(k, 32 | 64))
        }
        (Ty::E4M3 | Ty::E5M2, Ty::E4M3 | Ty::E5M2) => m == 16 && n == 8 && matches!(k, 16 | 32),
        (Ty::B1, Ty::B1) => n == 8 && (m == 8 && k == 128 || m == 16 && matches!(k, 128 | 256)),
        _ => false,
    };
    let acc = match at {
        Ty::F16 | Ty::E4M3 | Ty::E5M2 => dt == ct && matches!(dt, Ty::F32 | Ty::F16),
        Ty::BF16 | Ty::TF32 => dt == Ty::F32 && ct == Ty::F32,
        Ty::F64 => dt == Ty::F64 && ct == Ty::F64,
        _ => dt == Ty::S32 && ct == Ty::S32,
    };
    if !ok || !acc || rounding.is_some() && at != Ty::F64 {
        return d.fail("no such combination of shape and types");
    }
    d.count(4..=4)?;
    let groups = [(dt, m * n), (at, m * k), (bt, k * n), (ct, m * n)];
    let mut list = vec![number(d, dt)?, number(d, at)?, number(d, bt)?];
    for (o, (ty, elements)) in groups.into_iter().enumerate() {
        let want = regs_of(elements, ty);
        let op = d.operand(o)?;
        let parts = match op {
            Operand::Vector(v) => &v[..],
            o => std::slice::from_ref(o),
        };
        if parts.len() as u32 != want {
            return d.fail(format!(
                "operand {} has {} registers where {want} are wanted",
                o + 1,
                parts.len()
            ));
        }
        for p in parts {
            let r = match (o, width(ty)) {
                (0, f) => d.dst_op(p, f)?,
                (_, File::D) => d.src_op(p, Ty::F64)?,
                (_, _) => d.src_op(p, if ty == Ty::F32 { Ty::F32 } else { Ty::B32 })?,
            };
            list.push(r);
        }
    }
    d.out.list = list.into();
    (d.out.a, d.out.b, d.out.c) = (m, n, k);
    d.out.imm = rounding.unwrap_or(0).into();
    d.out.exec = match at {
        Ty::S8 | Ty::U8 | Ty::S4 | Ty::U4 | Ty::B1 => exec_int,
        _ => exec_float,
    };
    Ok(())
}

/// All lanes of the warp must be here.
pub(super) fn whole_warp(cx: &mut Cx<'_>) -> Result<(), Flow> {
    let all = cx.w.live;
    if cx.w.full != !0 {
        cx.find(
            FindingKind::WarpSync,
            0,
            None,
            "a matrix instruction needs a whole warp of 32 threads".into(),
        );
        return Err(Flow::Stop);
    }
    if cx.w.live != !0 {
        let l = (!cx.w.live).trailing_zeros() as usize;
        cx.find(
            FindingKind::WarpSync,
            l,
            None,
            "a matrix instruction after a lane of the warp has exited".into(),
        );
        return Err(Flow::Stop);
    }
    cx.converged(all)
}

/// An element of a packed register as f64.
pub(super) fn element(ty: Ty, reg: u64, e: u32) -> f64 {
    match ty {
        Ty::F16 => f16_to_f32((reg >> (16 * e)) as u16).into(),
        Ty::BF16 => bf16_to_f32((reg >> (16 * e)) as u16).into(),
        // The hardware reads the upper 19 bits.
        Ty::TF32 => f32::from_bits(reg as u32 & 0xffff_e000).into(),
        Ty::E4M3 => e4m3_decode((reg >> (8 * e)) as u8),
        Ty::E5M2 => e5m2_decode((reg >> (8 * e)) as u8),
        Ty::F32 => f32::from_bits(reg as u32).into(),
        _ => f64::from_bits(reg),
    }
}

/// Row and column of element `e` of register `r` of A, or of B with row and column exchanged.
fn place(rows16: bool, lane: u32, r: u32, e: u32, per: u32) -> (u32, u32) {
    let (g, t) = (lane >> 2, lane & 3);
    if rows16 { (g + 8 * (r & 1), t * per + e + (r >> 1) * 4 * per) } else { (g, t * per + e + r * 4 * per) }
}

/// `acc[16][8] += a[16][K] × b[K][8]` in f64.
pub(crate) fn mma_m16n8(
    acc: &mut [[f64; 8]; 16],
    a: &[[f64; 32]; 16],
    b: &[[f64; 8]; 32],
    m: usize,
    k: usize,
) {
    for r in 0..m {
        let mut s = [0f64; 8];
        for (x, y) in a[r].iter().zip(b).take(k) {
            for c in 0..8 {
                s[c] += x * y[c];
            }
        }
        for c in 0..8 {
            acc[r][c] += s[c];
        }
    }
}

fn exec_float(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if let Err(f) = whole_warp(cx) {
        return f;
    }
    let (m, k) = (i.a, i.c);
    let (dt, at) = (TYPES[i.list[0] as usize], TYPES[i.list[1] as usize]);
    let bt = TYPES[i.list[2] as usize];
    let n_d = regs_of(m * 8, dt) as usize;
    let n_a = regs_of(m * k, at) as usize;
    let n_b = regs_of(k * 8, bt) as usize;
    let (rd, rest) = i.list[3..].split_at(n_d);
    let (ra, rest) = rest.split_at(n_a);
    let (rb, rc) = rest.split_at(n_b);
    let per = if at == Ty::F64 { 1 } else { 32 / at.bits().max(if at == Ty::TF32 { 32 } else { 1 }) };
    let per = if at == Ty::TF32 { 1 } else { per };
    let mut a = [[0f64; 32]; 16];
    let mut b = [[0f64; 8]; 32];
    for (r, &reg) in ra.iter().enumerate() {
        let v = cx.w.regs.wide(Reg { file: width(at), idx: reg });
        for (l, v) in v.iter().enumerate() {
            for e in 0..per {
                let (row, col) = place(m == 16, l as u32, r as u32, e, per);
                a[row as usize][col as usize] = element(at, *v, e);
            }
        }
    }
    for (r, &reg) in rb.iter().enumerate() {
        let v = cx.w.regs.wide(Reg { file: width(bt), idx: reg });
        for (l, v) in v.iter().enumerate() {
            for e in 0..per {
                let (col, row) = place(false, l as u32, r as u32, e, per);
                b[row as usize][col as usize] = element(bt, *v, e);
            }
        }
    }
    let mut acc = [[0f64; 8]; 16];
    // C and D: element 2·half + e of a lane is row g + 8·half, column 2·t + e.
    let halves = (m / 8) as usize;
    let at_c = |l: usize, h: usize, e: usize| ((l >> 2) + 8 * h, (l & 3) * 2 + e);
    for h in 0..halves {
        for e in 0..2 {
            let (reg, part) = if dt == Ty::F16 { (rc[h], e as u32) } else { (rc[2 * h + e], 0) };
            let v = cx.w.regs.wide(Reg { file: width(dt), idx: reg });
            for (l, v) in v.iter().enumerate() {
                let (row, col) = at_c(l, h, e);
                acc[row][col] = element(dt, *v, part);
            }
        }
    }
    if at == Ty::F64 {
        // Double precision accumulates in order, each step rounded.
        let mode = Round::from_bits(i.imm as u32);
        for (row, acc) in acc.iter_mut().enumerate().take(m as usize) {
            for (col, s) in acc.iter_mut().enumerate() {
                for x in 0..k as usize {
                    *s = Directed::fma(a[row][x], b[x][col], *s, mode);
                }
            }
        }
    } else {
        mma_m16n8(&mut acc, &a, &b, m as usize, k as usize);
    }
    for h in 0..halves {
        match dt {
            Ty::F16 => {
                let r: [u32; LANES] = std::array::from_fn(|l| {
                    let f = |e| {
                        let (row, col) = at_c(l, h, e);
                        F16.encode(acc[row][col], Round::Rn, false) as u32
                    };
                    f(0) | f(1) << 16
                });
                cx.put(rd[h], &r);
            }
            Ty::F64 => {
                for e in 0..2 {
                    let r: [u64; LANES] = std::array::from_fn(|l| {
                        let (row, col) = at_c(l, h, e);
                        acc[row][col].to_bits()
                    });
                    cx.put(rd[2 * h + e], &r);
                }
            }
            _ => {
                for e in 0..2 {
                    let r: [u32; LANES] = std::array::from_fn(|l| {
                        let (row, col) = at_c(l, h, e);
                        canon32(acc[row][col] as f32)
                    });
                    cx.put(rd[2 * h + e], &r);
                }
            }
        }
    }
    Flow::Next
}

pub(super) fn int_element(ty: Ty, reg: u32, e: u32) -> i32 {
    match ty {
        Ty::S8 => (reg >> (8 * e)) as i8 as i32,
        Ty::U8 => (reg >> (8 * e)) as u8 as i32,
        Ty::S4 => ((reg >> (4 * e) & 15) << 28) as i32 >> 28,
        Ty::U4 => (reg >> (4 * e) & 15) as i32,
        _ => (reg >> e & 1) as i32,
    }
}

fn exec_int(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if let Err(f) = whole_warp(cx) {
        return f;
    }
    let (m, k) = (i.a, i.c);
    let (at, bt) = (TYPES[i.list[1] as usize], TYPES[i.list[2] as usize]);
    let n_d = (m / 4) as usize;
    let n_a = regs_of(m * k, at) as usize;
    let n_b = regs_of(k * 8, bt) as usize;
    let (rd, rest) = i.list[3..].split_at(n_d);
    let (ra, rest) = rest.split_at(n_a);
    let (rb, rc) = rest.split_at(n_b);
    let per = 32 / at.bits();
    let mut a = vec![[0i32; 256]; 16];
    let mut b = vec![[0i32; 8]; 256];
    for (r, &reg) in ra.iter().enumerate() {
        let v = cx.get::<u32>(reg);
        for (l, v) in v.iter().enumerate() {
            for e in 0..per {
                let (row, col) = place(m == 16, l as u32, r as u32, e, per);
                a[row as usize][col as usize] = int_element(at, *v, e);
            }
        }
    }
    for (r, &reg) in rb.iter().enumerate() {
        let v = cx.get::<u32>(reg);
        for (l, v) in v.iter().enumerate() {
            for e in 0..per {
                let (col, row) = place(false, l as u32, r as u32, e, per);
                b[row as usize][col as usize] = int_element(bt, *v, e);
            }
        }
    }
    // Registers of C may be those of D, in any order.
    let c_of: Vec<[u32; LANES]> = rc.iter().map(|&reg| cx.get::<u32>(reg)).collect();
    for h in 0..(m / 8) as usize {
        for e in 0..2 {
            let c = &c_of[2 * h + e];
            let r: [u32; LANES] = std::array::from_fn(|l| {
                let (row, col) = ((l >> 2) + 8 * h, (l & 3) * 2 + e);
                let mut s = 0i64;
                for x in 0..k as usize {
                    let (p, q) = (a[row][x], b[x][col]);
                    s += i64::from(if i.flags & XOR_POPC != 0 { p ^ q } else { p * q });
                }
                let v = i64::from(c[l] as i32) + s;
                if i.flags & SATFINITE != 0 {
                    v.clamp(i32::MIN.into(), i32::MAX.into()) as u32
                } else {
                    v as u32
                }
            });
            cx.put(rd[2 * h + e], &r);
        }
    }
    Flow::Next
}

/// `ldmatrix` and `stmatrix`: the shape and count.
fn matrices(d: &mut Dec) -> Result<u8, Error> {
    d.has("sync");
    d.has("aligned");
    if !d.has("m8n8") {
        return d.fail("not supported yet: shapes other than .m8n8");
    }
    let Some(n) = d.one_of(&[("x1", 1u8), ("x2", 2), ("x4", 4)]) else {
        return d.fail("`.x1`, `.x2` or `.x4` is wanted");
    };
    if d.has("trans") {
        d.out.flags |= 1;
    }
    let space = d.space();
    if !matches!(space, Space::Shared | Space::Generic) {
        return d.fail("`.shared` is wanted");
    }
    d.out.space = space;
    let ty = d.ty()?;
    if ty != Ty::B16 {
        return Err(d.bad_type(ty));
    }
    d.count(2..=2)?;
    Ok(n)
}

fn vector_of(op: &Operand) -> &[Operand] {
    match op {
        Operand::Vector(v) => v,
        o => std::slice::from_ref(o),
    }
}

/// The registers of the matrices and the address, which are the operands of these numbers; `register` makes a register of an operand.
fn matrix_operands(
    d: &mut Dec,
    [registers, address]: [usize; 2],
    register: impl Fn(&mut Dec, &Operand) -> Result<u32, Error>,
) -> R {
    let n = matrices(d)?;
    let v = vector_of(d.operand(registers)?);
    if v.len() != n as usize {
        return d.fail(format!("{} registers where {n} are wanted", v.len()));
    }
    let list: Vec<u32> = v.iter().map(|o| register(d, o)).collect::<Result<_, _>>()?;
    let (a, off, space) = d.mem(address, d.out.space)?;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    d.out.list = list.into();
    d.out.vec = n;
    Ok(())
}

pub(super) fn ldmatrix(d: &mut Dec) -> R {
    matrix_operands(d, [0, 1], |d, o| d.dst_op(o, File::W))?;
    d.out.exec = |cx, i| {
        if let Err(f) = whole_warp(cx) {
            return f;
        }
        let addr = cx.addresses(i);
        let n = i.vec as usize;
        let all = cx.mask;
        // Lanes past the last matrix give no address.
        cx.mask = if n == 4 { !0 } else { (1u32 << (8 * n)) - 1 };
        let p = cx.resolve(i.space, &addr, 16, Kind::Read);
        cx.mask = all;
        for k in 0..n {
            let mut rows = [[0u16; 8]; 8];
            for (r, row) in rows.iter_mut().enumerate() {
                let l = 8 * k + r;
                if p.mask() >> l & 1 == 0 {
                    continue;
                }
                let (lo, hi) = (cx.read(&p, l, 0, 8), cx.read(&p, l, 8, 8));
                for e in 0..4 {
                    row[e] = (lo >> (16 * e)) as u16;
                    row[e + 4] = (hi >> (16 * e)) as u16;
                }
            }
            let trans = i.flags & 1 != 0;
            let v: [u32; LANES] = std::array::from_fn(|l| {
                let (g, t) = (l >> 2, (l & 3) * 2);
                let (x, y) = if trans { (rows[t][g], rows[t + 1][g]) } else { (rows[g][t], rows[g][t + 1]) };
                u32::from(x) | u32::from(y) << 16
            });
            cx.put(i.list[k], &v);
        }
        Flow::Next
    };
    Ok(())
}

pub(super) fn stmatrix(d: &mut Dec) -> R {
    matrix_operands(d, [1, 0], |d, o| d.src_op(o, Ty::B32))?;
    d.out.exec = |cx, i| {
        if let Err(f) = whole_warp(cx) {
            return f;
        }
        let addr = cx.addresses(i);
        let n = i.vec as usize;
        let all = cx.mask;
        cx.mask = if n == 4 { !0 } else { (1u32 << (8 * n)) - 1 };
        let p = cx.resolve(i.space, &addr, 16, Kind::Write);
        cx.mask = all;
        for k in 0..n {
            let v = cx.get::<u32>(i.list[k]);
            let mut rows = [[0u16; 8]; 8];
            for (l, v) in v.iter().enumerate() {
                let (g, t) = (l >> 2, (l & 3) * 2);
                for e in 0..2 {
                    let x = (v >> (16 * e)) as u16;
                    if i.flags & 1 != 0 {
                        rows[t + e][g] = x;
                    } else {
                        rows[g][t + e] = x;
                    }
                }
            }
            for (r, row) in rows.iter().enumerate() {
                let l = 8 * k + r;
                if p.mask() >> l & 1 != 0 {
                    for (e, x) in row.iter().enumerate() {
                        cx.write(&p, l, 2 * e as u32, 2, (*x).into());
                    }
                }
            }
        }
        crate::shadow::settle(cx);
        Flow::Next
    };
    Ok(())
}

pub(super) fn movmatrix(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    if !d.has("m8n8") || !d.has("trans") {
        return d.fail("`.m8n8.trans` is wanted");
    }
    d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, Ty::B32)?;
    d.out.exec = |cx, i| {
        if let Err(f) = whole_warp(cx) {
            return f;
        }
        let a = cx.get::<u32>(i.a);
        let at = |row: usize, col: usize| (a[row * 4 + col / 2] >> (16 * (col & 1))) as u16;
        let r: [u32; LANES] = std::array::from_fn(|l| {
            let (g, t) = (l >> 2, (l & 3) * 2);
            u32::from(at(t, g)) | u32::from(at(t + 1, g)) << 16
        });
        cx.put(i.d, &r);
        Flow::Next
    };
    Ok(())
}
