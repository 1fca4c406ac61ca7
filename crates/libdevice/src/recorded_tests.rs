//! Recorded functions, run by a recorder that computes, against what the table says.

use crate::record::{Binary, Compare, Convert, Recorder, Word};
use crate::{Accuracy, Function, Type, all, recorded};

/// Values are their bits.
#[derive(Default)]
struct Machine {
    /// Whether it makes any number an integer.
    lenient: bool,
}

#[derive(Clone, Copy)]
struct Bits(Word, u64);

impl Bits {
    fn signed(self) -> i64 {
        let unused = 64 - self.0.bits();
        (self.1 << unused) as i64 >> unused
    }
    fn float(self) -> f32 {
        f32::from_bits(self.1 as u32)
    }
    /// A float of either format.
    fn real(self) -> f64 {
        if self.0 == Word::F64 { f64::from_bits(self.1) } else { self.float().into() }
    }
}

/// Arithmetic in the format of a value; what fp32 makes of two numbers fp64 makes exactly enough to be rounded.
fn rounded(word: Word, x: f64) -> Bits {
    let bits = if word == Word::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) };
    of(word, bits)
}

fn of(word: Word, bits: u64) -> Bits {
    Bits(word, bits << (64 - word.bits()) >> (64 - word.bits()))
}

impl Recorder for Machine {
    type Value = Bits;

    fn word(&self, x: Bits) -> Word {
        x.0
    }
    fn integer(&mut self, n: i64, ty: Word) -> Bits {
        of(ty, n as u64)
    }
    fn number(&mut self, x: f64, ty: Word) -> Bits {
        rounded(ty, x)
    }
    fn binary(&mut self, op: Binary, x: Bits, y: Bits) -> Bits {
        assert_eq!(x.0, y.0);
        let bits = match op {
            Binary::Add => x.1.wrapping_add(y.1),
            Binary::Sub => x.1.wrapping_sub(y.1),
            Binary::Mul => x.1.wrapping_mul(y.1),
            Binary::DivU => x.1 / y.1,
            Binary::RemU => x.1 % y.1,
            Binary::And => x.1 & y.1,
            Binary::Or => x.1 | y.1,
            Binary::Xor => x.1 ^ y.1,
            Binary::Shl | Binary::ShrU | Binary::ShrS => {
                assert!(y.1 < u64::from(x.0.bits()), "{op:?} by {}", y.1);
                match op {
                    Binary::Shl => x.1 << y.1,
                    Binary::ShrU => x.1 >> y.1,
                    _ => (x.signed() >> y.1) as u64,
                }
            }
            Binary::AddF => return rounded(x.0, x.real() + y.real()),
            Binary::SubF => return rounded(x.0, x.real() - y.real()),
            Binary::MulF => return rounded(x.0, x.real() * y.real()),
            Binary::DivF => return rounded(x.0, x.real() / y.real()),
            Binary::MinF => return rounded(x.0, x.real().min(y.real())),
        };
        of(x.0, bits)
    }
    fn compare(&mut self, how: Compare, x: Bits, y: Bits) -> Bits {
        assert_eq!(x.0, y.0);
        let truth = match how {
            Compare::Eq => x.1 == y.1,
            Compare::LessS => x.signed() < y.signed(),
            Compare::LessU => x.1 < y.1,
            Compare::LessF => x.real() < y.real(),
            Compare::NotF => x.real() != y.real(),
        };
        Bits(Word::I8, truth.into())
    }
    fn select(&mut self, truth: Bits, yes: Bits, no: Bits) -> Bits {
        assert_eq!(yes.0, no.0);
        if truth.1 != 0 { yes } else { no }
    }
    fn convert(&mut self, how: Convert, x: Bits, to: Word) -> Bits {
        match how {
            Convert::Bits | Convert::Low | Convert::Zero => of(to, x.1),
            Convert::Sign => of(to, x.signed() as u64),
            Convert::Whole => {
                let whole = x.real().trunc();
                let limit = 2f64.powi(to.bits() as i32 - 1);
                // (What instructions make of anything else is not said; here nobody may ask.)
                assert!(self.lenient || (-limit..limit).contains(&whole), "{whole} as an integer");
                of(to, whole as i64 as u64)
            }
            Convert::Float if to == Word::F64 => of(to, (x.signed() as f64).to_bits()),
            Convert::Float => of(to, u64::from((x.signed() as f32).to_bits())),
            Convert::Round => rounded(to, x.real()),
        }
    }
    fn magnitude(&mut self, x: Bits) -> Bits {
        rounded(x.0, x.real().abs())
    }
}

/// Arguments of a function: bits at the edges, bits of any kind, and floats that are near each other.
fn arguments(function: &Function, count: usize) -> Vec<Vec<u64>> {
    let edges = [
        0u64,
        1,
        2,
        3,
        0x7f_ffff,
        0x80_0000,
        0x3f80_0000,
        0x3f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x4b00_0001,
        0x5f00_0000,
        0x4f00_0000,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    (0..count)
        .map(|_| {
            let near = next() & 0x7f80_0000;
            let mut argument = |ty: &Type| {
                let any = next();
                let sign = (any & 1) << (ty.bits() - 1);
                if *ty == Type::F64 && any >> 1 & 3 != 2 {
                    // The same as of fp32, or near it.
                    let edge =
                        f32::from_bits(edges[(any >> 8) as usize % edges.len()] as u32 | (sign >> 32) as u32);
                    let small = f32::from_bits(near as u32 | next() as u32 & 0x807f_ffff);
                    return match any >> 1 & 3 {
                        0 => f64::from(edge).to_bits(),
                        1 => (f64::from(edge) + f64::from(small) * 1e-9).to_bits(),
                        _ => f64::from(small).to_bits(),
                    };
                }
                match any >> 1 & 3 {
                    0 => edges[(any >> 8) as usize % edges.len()] | sign,
                    1 => near.wrapping_add((next() & 7) << 23) & 0x7f80_0000 | next() & 0x7f_ffff | sign,
                    2 if !ty.is_float() => next() & 0x3f | sign,
                    _ => next(),
                }
            };
            function.params.iter().map(&mut argument).collect()
        })
        .collect()
}

#[test]
fn recorded_functions_are_those_of_the_table() {
    let mut tested = [0, 0];
    for function in all() {
        let word = |ty: Type| match (ty.is_float(), ty.bits()) {
            (true, 64) => Word::F64,
            (true, _) => Word::F32,
            (_, 64) => Word::I64,
            _ => Word::I32,
        };
        let exact = function.accuracy == Accuracy::Exact;
        // (What is not chosen is computed, too, of whatever there is.)
        let mut machine = Machine { lenient: !exact || function.name == "rsqrt_rn" };
        for (i, args) in arguments(function, 4000).into_iter().enumerate() {
            let given = args.iter().zip(function.params);
            let values: Vec<Bits> = given.clone().map(|(&bits, &ty)| of(word(ty), bits)).collect();
            let Some(found) = recorded::record(&mut machine, function, &values) else { break };
            tested[usize::from(exact)] += usize::from(i == 0);
            let bytes: Vec<Vec<u8>> =
                given.map(|(bits, ty)| bits.to_le_bytes()[..ty.bits() as usize / 8].to_vec()).collect();
            let slices: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
            let mut out = vec![0; function.result.bits() as usize / 8];
            (function.elements)(&slices, &mut out);
            out.resize(8, 0);
            let want = of(word(function.result), u64::from_le_bytes(out.try_into().expect("8 bytes")));
            let nan = function.result.is_float() && found.real().is_nan() && want.real().is_nan();
            let shown: Vec<String> = values.iter().map(|v| format!("{:x} ({:?})", v.1, v.real())).collect();
            let text = format!("{} of {shown:?}: {:x} ({:?})", function.symbol, found.1, found.real());
            let same = found.1 == want.1 || !exact && near(function, found, want);
            assert!(nan || same, "{text}, not {:x} ({:?})", want.1, want.real());
        }
    }
    assert!(tested[0] > 80 && tested[1] > 130, "{tested:?}");
}

/// Whether a result that may have an error is as near as is said: a single that is rounded once from nearly the same, a double that may be a few units away, or more where that is
/// near a zero of a Bessel function.
fn near(function: &Function, found: Bits, want: Bits) -> bool {
    let (a, b) = (found.real(), want.real());
    if a == b && a.is_sign_negative() == b.is_sign_negative() {
        return true;
    }
    let apart = (a - b).abs();
    let bessel = ["j0", "j1", "y0", "y1"].contains(&function.name);
    let unit = match want.0 {
        Word::F64 => b.abs().next_up() - b.abs(),
        _ => f64::from(want.float().abs().next_up() - want.float().abs()),
    };
    if want.0 == Word::F64 {
        return apart <= 8.0 * unit || bessel && apart <= 1e-13;
    }
    apart <= unit || bessel && apart <= 1e-9 || function.name == "lgamma" && apart <= 1e-9
}

#[test]
fn what_a_product_leaves_of_a_number_beside_it() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // From 1 to 2.
        f64::from_bits(state >> 12 | 0x3ff0_0000_0000_0000)
    };
    for symbol in ["__nv_fma", "__nv_fma_rd", "__nv_fma_ru", "__nv_fma_rz"] {
        let function = crate::of_symbol(symbol).expect("a function");
        for i in 0..6000 {
            let (x, y) = (next(), next());
            // The product but for its last bits, beside it, or some powers of two away from it.
            let away = [1.0, next(), 2f64.powi(i % 120 - 60), 1.0 + 2f64.powi(-(i % 53))][i as usize % 4];
            let z = -(x * y) * away;
            let args = [x, y, z].map(f64::to_bits);
            let values = args.map(|bits| of(Word::F64, bits));
            let found = recorded::record(&mut Machine::default(), function, &values).expect("recorded");
            let bytes = args.map(u64::to_le_bytes);
            let slices: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
            let mut out = [0; 8];
            (function.elements)(&slices, &mut out);
            let want = f64::from_le_bytes(out);
            assert_eq!(found.1, want.to_bits(), "{symbol}({x}, {y}, {z}): {}, not {want}", found.real());
        }
    }
}
