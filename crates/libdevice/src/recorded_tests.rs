//! Recorded functions, run by a recorder that computes, against what the table says.

use crate::record::{Binary, Compare, Convert, Recorder, Word};
use crate::{Function, Type, all, recorded};

/// Values are their bits.
struct Machine;

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
    fn number(&mut self, x: f64, _: Word) -> Bits {
        of(Word::F32, u64::from((x as f32).to_bits()))
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
            Binary::AddF => u64::from((x.float() + y.float()).to_bits()),
            Binary::SubF => u64::from((x.float() - y.float()).to_bits()),
            Binary::MulF => u64::from((x.float() * y.float()).to_bits()),
            Binary::MinF => u64::from(x.float().min(y.float()).to_bits()),
        };
        of(x.0, bits)
    }
    fn compare(&mut self, how: Compare, x: Bits, y: Bits) -> Bits {
        assert_eq!(x.0, y.0);
        let truth = match how {
            Compare::Eq => x.1 == y.1,
            Compare::LessS => x.signed() < y.signed(),
            Compare::LessU => x.1 < y.1,
            Compare::LessF => x.float() < y.float(),
            Compare::NotF => x.float() != y.float(),
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
            Convert::Whole => of(to, x.float() as i64 as u64),
            Convert::Float => of(to, u64::from((x.signed() as f32).to_bits())),
        }
    }
    fn magnitude(&mut self, x: Bits) -> Bits {
        of(x.0, u64::from(x.float().abs().to_bits()))
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
    let mut machine = Machine;
    let mut tested = 0;
    for function in all() {
        let word = |ty: Type| match (ty.is_float(), ty.bits()) {
            (true, _) => Word::F32,
            (_, 64) => Word::I64,
            _ => Word::I32,
        };
        for (i, args) in arguments(function, 4000).into_iter().enumerate() {
            let given = args.iter().zip(function.params);
            let values: Vec<Bits> = given.clone().map(|(&bits, &ty)| of(word(ty), bits)).collect();
            let Some(found) = recorded::record(&mut machine, function, &values) else { break };
            tested += usize::from(i == 0);
            let bytes: Vec<Vec<u8>> =
                given.map(|(bits, ty)| bits.to_le_bytes()[..ty.bits() as usize / 8].to_vec()).collect();
            let slices: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
            let mut out = vec![0; function.result.bits() as usize / 8];
            (function.elements)(&slices, &mut out);
            out.resize(8, 0);
            let want = of(word(function.result), u64::from_le_bytes(out.try_into().expect("8 bytes")));
            let nan = function.result.is_float() && found.float().is_nan() && want.float().is_nan();
            let shown: Vec<String> = values.iter().map(|v| format!("{:x} ({})", v.1, v.float())).collect();
            let text = format!("{} of {shown:?}: {:x} ({})", function.symbol, found.1, found.float());
            assert!(nan || found.1 == want.1, "{text}, not {:x} ({})", want.1, want.float());
        }
    }
    assert!(tested > 90, "{tested}");
}
