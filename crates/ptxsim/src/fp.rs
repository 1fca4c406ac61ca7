//! Floating-point arithmetic with the ISA's rounding modes.
//!
//! Directed and odd rounding stand on one idea: an operation is done in f64 and *rounded to odd* (when it was inexact
//! and the last bit is even, the neighbour on the exact result's side is taken). From such a value any rounding to a
//! format with at most 51 bits is correct (Boldo & Melquiond, "Emulation of a FMA and correctly rounded sums").

/// Rounding modes (PTX ISA §9.7.3, §9.7.9.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Rn,
    /// Towards zero.
    Rz,
    /// Down.
    Rm,
    /// Up.
    Rp,
    /// To nearest, ties away from zero.
    Rna,
}

impl Round {
    pub fn from_bits(b: u32) -> Round {
        match b & 7 {
            1 => Round::Rz,
            2 => Round::Rm,
            3 => Round::Rp,
            4 => Round::Rna,
            _ => Round::Rn,
        }
    }
}

/// The NaN that single-precision instructions return.
pub(crate) const NAN32: u32 = 0x7fff_ffff;

/// A subnormal becomes zero of its sign.
#[inline(always)]
pub(crate) fn ftz32(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x }
}

/// NaN in its one form.
#[inline(always)]
pub(crate) fn canon32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// Moves an inexact even result to its odd neighbour on the side of the error.
fn odd(r: f64, err: f64) -> f64 {
    if err == 0.0 || !r.is_finite() || !err.is_finite() {
        return r;
    }
    let bits = r.to_bits();
    if bits & 1 != 0 {
        return r;
    }
    // Away from zero when the error has the result's sign.
    let out = (err > 0.0) == (r > 0.0);
    if r == 0.0 {
        return err;
    }
    f64::from_bits(if out { bits + 1 } else { bits - 1 })
}

fn two_sum_err(a: f64, b: f64, s: f64) -> f64 {
    let bb = s - a;
    (a - (s - bb)) + (b - bb)
}

/// `a + b`, rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    odd(s, two_sum_err(a, b, s))
}

/// `a × b` of values with at most 26 bits: exact.
pub(crate) fn mul_odd(a: f64, b: f64) -> f64 {
    a * b
}

/// `a × b + c` of values with at most 26 bits, rounded to odd.
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// `a ÷ b`, rounded to odd.
pub(crate) fn div_odd(a: f64, b: f64) -> f64 {
    let q = a / b;
    if !q.is_finite() || b.is_infinite() {
        return q;
    }
    let r = (-q).mul_add(b, a);
    odd(q, if (r > 0.0) == (b > 0.0) { r.abs() } else { -r.abs() })
}

/// `√a`, rounded to odd.
pub(crate) fn sqrt_odd(a: f64) -> f64 {
    let q = a.sqrt();
    if !q.is_finite() || q == 0.0 {
        return q;
    }
    odd(q, (-q).mul_add(q, a))
}

/// A binary format by its exponent and fraction widths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub exp: u32,
    pub man: u32,
}

pub(crate) const F32: Format = Format { exp: 8, man: 23 };
pub(crate) const F16: Format = Format { exp: 5, man: 10 };
pub(crate) const BF16: Format = Format { exp: 8, man: 7 };
pub(crate) const TF32: Format = Format { exp: 8, man: 10 };
pub(crate) const E5M2: Format = Format { exp: 5, man: 2 };

impl Format {
    pub fn inf(self) -> u64 {
        ((1 << self.exp) - 1) << self.man
    }
    pub fn nan(self) -> u64 {
        self.inf() | ((1 << self.man) - 1)
    }
    fn sign(self) -> u64 {
        1 << (self.exp + self.man)
    }

    /// Rounds `x` (exact, or rounded to odd) to this format. With `saturate`, overflow gives the largest finite value.
    pub fn encode(self, x: f64, mode: Round, saturate: bool) -> u64 {
        if x.is_nan() {
            return self.nan();
        }
        let neg = x.is_sign_negative();
        let sign = if neg { self.sign() } else { 0 };
        let m = self.magnitude(x.abs(), neg, mode);
        if m < self.inf() {
            return sign | m;
        }
        let largest = self.inf() - 1;
        let exact_inf = x.is_infinite();
        let to_inf = match mode {
            Round::Rn | Round::Rna => true,
            Round::Rz => false,
            Round::Rm => neg,
            Round::Rp => !neg,
        };
        sign | if saturate || !(to_inf || exact_inf) { largest } else { self.inf() }
    }

    /// Exponent and fraction of `a ≥ 0`, rounded; may run past infinity's encoding.
    pub fn magnitude(self, a: f64, neg: bool, mode: Round) -> u64 {
        if a == 0.0 {
            return 0;
        }
        if a.is_infinite() {
            return u64::MAX >> 1;
        }
        let emin = 2 - (1 << (self.exp - 1));
        let e = ((a.to_bits() >> 52) as i32 - 1023).max(emin);
        let scaled = scale(a, self.man as i32 - e);
        let floor = scaled.floor();
        let rem = scaled - floor;
        let n = floor as u64;
        let up = match mode {
            Round::Rn => rem > 0.5 || (rem == 0.5 && n & 1 != 0),
            Round::Rna => rem >= 0.5,
            Round::Rz => false,
            Round::Rm => neg && rem > 0.0,
            Round::Rp => !neg && rem > 0.0,
        };
        (((e - emin) as u64) << self.man) + n + u64::from(up)
    }

    /// The value of an encoding.
    pub fn decode(self, bits: u64) -> f64 {
        let m = bits & ((1 << self.man) - 1);
        let e = (bits >> self.man) & ((1 << self.exp) - 1);
        let bias = (1 << (self.exp - 1)) - 1;
        let v = if e == (1 << self.exp) - 1 {
            if m != 0 { f64::NAN } else { f64::INFINITY }
        } else if e == 0 {
            scale(m as f64, 1 - bias - self.man as i32)
        } else {
            scale((m | 1 << self.man) as f64, e as i32 - bias - self.man as i32)
        };
        if bits & self.sign() != 0 { -v } else { v }
    }
}

/// `x × 2^e`, exact while the result is normal.
fn scale(x: f64, e: i32) -> f64 {
    if (-1022..=1023).contains(&e) {
        return x * f64::from_bits(((e + 1023) as u64) << 52);
    }
    let h = e / 2;
    scale(scale(x, h), e - h)
}

/// f32 → bf16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    let b = x.to_bits();
    if x.is_nan() {
        return 0x7fff;
    }
    ((b + 0x7fff + (b >> 16 & 1)) >> 16) as u16
}

#[inline(always)]
pub(crate) fn bf16_to_f32(b: u16) -> f32 {
    f32::from_bits(u32::from(b) << 16)
}

/// f32 → f16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    if x.is_nan() { 0x7fff } else { half::f16::from_f32(x).to_bits() }
}

/// f16 → f32 without a branch, so that loops over it vectorize.
#[inline(always)]
pub(crate) fn f16_to_f32(b: u16) -> f32 {
    let m = u32::from(b & 0x7fff) << 13;
    // 2^112 corrects the exponent's bias; subnormals come out right too.
    let f = f32::from_bits(m) * f32::from_bits(0x7780_0000);
    let bits = if m >= 0x0f80_0000 { m | 0x7f80_0000 } else { f.to_bits() };
    f32::from_bits(bits | u32::from(b & 0x8000) << 16)
}

/// Rounds an odd-rounded f64 to f32.
pub(crate) fn to_f32(x: f64, mode: Round) -> f32 {
    f32::from_bits(F32.encode(x, mode, false) as u32)
}

/// f64 arithmetic with a rounding mode: `r` is the result to nearest and `err` has the sign of what it lacks.
pub(crate) fn direct64(r: f64, err: f64, mode: Round) -> f64 {
    if err == 0.0 || r.is_nan() || err.is_nan() {
        return r;
    }
    if r.is_infinite() {
        // Overflow of finite operands.
        return match mode {
            Round::Rz => f64::MAX.copysign(r),
            Round::Rm if r > 0.0 => f64::MAX,
            Round::Rp if r < 0.0 => f64::MIN,
            _ => r,
        };
    }
    let up = match mode {
        Round::Rn | Round::Rna => return r,
        Round::Rz => r < 0.0 || (r == 0.0 && err < 0.0),
        Round::Rm => false,
        Round::Rp => true,
    };
    match (up, err > 0.0) {
        (true, true) => r.next_up(),
        (false, false) => r.next_down(),
        _ => r,
    }
}

/// `a + b` in f64 with a rounding mode.
pub(crate) fn add64(a: f64, b: f64, mode: Round) -> f64 {
    let s = a + b;
    if mode == Round::Rn {
        return s;
    }
    if s == 0.0 && a != 0.0 {
        // An exact cancellation is −0 only when rounding down.
        return if mode == Round::Rm { -0.0 } else { 0.0 };
    }
    let err = if s.is_infinite() && a.is_finite() && b.is_finite() { -s } else { two_sum_err(a, b, s) };
    direct64(s, err, mode)
}

/// `a × b` in f64 with a rounding mode.
pub(crate) fn mul64(a: f64, b: f64, mode: Round) -> f64 {
    let p = a * b;
    if mode == Round::Rn {
        return p;
    }
    let err = if p.is_infinite() && a.is_finite() && b.is_finite() { -p } else { a.mul_add(b, -p) };
    direct64(p, err, mode)
}

/// `a × b + c` in f64 with a rounding mode.
pub(crate) fn fma64(a: f64, b: f64, c: f64, mode: Round) -> f64 {
    let r = a.mul_add(b, c);
    if mode == Round::Rn {
        return r;
    }
    // Error-free transformation of a fused multiply-add (Boldo & Muller).
    let u1 = a * b;
    let u2 = a.mul_add(b, -u1);
    let a1 = c + u2;
    let a2 = two_sum_err(c, u2, a1);
    let b1 = u1 + a1;
    let b2 = two_sum_err(u1, a1, b1);
    let g = (b1 - r) + b2;
    let err = if r.is_infinite() && a.is_finite() && b.is_finite() && c.is_finite() { -r } else { g + a2 };
    direct64(r, err, mode)
}

/// `a ÷ b` in f64 with a rounding mode.
pub(crate) fn div64(a: f64, b: f64, mode: Round) -> f64 {
    let q = a / b;
    if mode == Round::Rn || b == 0.0 || !a.is_finite() || b.is_infinite() {
        return q;
    }
    let r = (-q).mul_add(b, a);
    direct64(
        q,
        if q.is_infinite() {
            -q
        } else if b < 0.0 {
            -r
        } else {
            r
        },
        mode,
    )
}

/// `√a` in f64 with a rounding mode.
pub(crate) fn sqrt64(a: f64, mode: Round) -> f64 {
    let q = a.sqrt();
    if mode == Round::Rn || !q.is_finite() || q == 0.0 {
        return q;
    }
    direct64(q, (-q).mul_add(q, a), mode)
}

/// e4m3 → f64 (§5.2.3: no infinity, one NaN encoding a sign).
pub(crate) fn e4m3_decode(b: u8) -> f64 {
    if b & 0x7f == 0x7f {
        return f64::NAN;
    }
    let (e, m) = (i32::from(b >> 3 & 15), f64::from(b & 7));
    let v = if e == 0 { m * 2f64.powi(-9) } else { (m + 8.0) * 2f64.powi(e - 10) };
    if b & 0x80 != 0 { -v } else { v }
}

/// f64 → e4m3, to nearest even, overflow to the largest finite value (`.satfinite`).
pub(crate) fn e4m3_encode(x: f64) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let m = Format { exp: 4, man: 3 }.magnitude(x.abs(), false, Round::Rn);
    sign | m.min(0x7e) as u8
}

pub(crate) fn e5m2_decode(b: u8) -> f64 {
    E5M2.decode(b.into())
}

/// f64 → e5m2, to nearest even, overflow to the largest finite value (`.satfinite`).
pub(crate) fn e5m2_encode(x: f64) -> u8 {
    if x.is_nan() { 0x7f } else { E5M2.encode(x, Round::Rn, true) as u8 }
}

/// 32 fused multiply-adds; the hardware's instruction where the machine has it.
pub(crate) fn fma_lanes(a: &[f32; 32], b: &[f32; 32], c: &[f32; 32]) -> [f32; 32] {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast(a: &[f32; 32], b: &[f32; 32], c: &[f32; 32]) -> [f32; 32] {
            std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the features were just detected.
            return unsafe { fast(a, b, c) };
        }
    }
    std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_formats_round_like_the_half_crate() {
        for i in 0..200_000u32 {
            let x = f32::from_bits(i.wrapping_mul(0x9e37_79b1));
            if x.is_nan() {
                continue;
            }
            assert_eq!(
                F16.encode(x.into(), Round::Rn, false) as u16,
                half::f16::from_f32(x).to_bits(),
                "{x:e}"
            );
            assert_eq!(
                BF16.encode(x.into(), Round::Rn, false) as u16,
                half::bf16::from_f32(x).to_bits(),
                "{x:e}"
            );
            assert_eq!(F32.encode(x.into(), Round::Rz, false) as u32, x.to_bits());
        }
    }

    #[test]
    fn every_half_decodes() {
        for b in 0..=u16::MAX {
            let (x, y) = (f16_to_f32(b), half::f16::from_bits(b).to_f32());
            assert!(x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()), "{b:x}");
        }
    }

    #[test]
    fn odd_rounding_gives_native_sums() {
        let mut s = 1u64;
        for _ in 0..200_000 {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let a = f32::from_bits((s >> 32) as u32);
            let b = f32::from_bits(((s >> 20) as u32) ^ 0x0040_0000);
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            let (x, y) = (f64::from(a), f64::from(b));
            assert_eq!(to_f32(add_odd(x, y), Round::Rn), a + b);
            assert_eq!(to_f32(mul_odd(x, y), Round::Rn), a * b);
            if b != 0.0 {
                assert_eq!(to_f32(div_odd(x, y), Round::Rn), a / b);
            }
            assert_eq!(to_f32(fma_odd(x, y, 1.0), Round::Rn), a.mul_add(b, 1.0));
            let (lo, hi) = (to_f32(add_odd(x, y), Round::Rm), to_f32(add_odd(x, y), Round::Rp));
            assert!(f64::from(lo) <= x + y && x + y <= f64::from(hi));
        }
    }

    #[test]
    fn fp8_round_trips() {
        for b in 0..=255u8 {
            let v = e4m3_decode(b);
            assert!(v.is_nan() || e4m3_encode(v) == b, "{b:x}");
            let v = e5m2_decode(b);
            assert!(!v.is_finite() || e5m2_encode(v) == b, "{b:x}");
        }
        assert_eq!(e4m3_encode(1e9), 0x7e);
        assert_eq!(e4m3_decode(0x7e), 448.0);
    }
}
