//! Kernel arguments written as text, for the command line: `u32[128]=iota,f32[64]=rand:7,f32[64]=zeros,i32=5`.
//!
//! A typed array with a filling, or a typed scalar, for each parameter. Fillings: `zeros`, `ones`, `iota` (0, 1, 2, …),
//! `rand` or `rand:SEED` (floats in [−1, 1), integers in [0, 100)), or a number.

use crate::fp::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::{Error, Memory, Param};

/// Arrays larger than this are refused.
const MAX_BYTES: usize = 1 << 32;

/// An element's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned(u32),
    Signed(u32),
    F16,
    BF16,
    F32,
    F64,
}

impl Kind {
    fn parse(s: &str) -> Option<Kind> {
        Some(match s {
            "u8" => Kind::Unsigned(1),
            "u16" => Kind::Unsigned(2),
            "u32" => Kind::Unsigned(4),
            "u64" => Kind::Unsigned(8),
            "i8" | "s8" => Kind::Signed(1),
            "i16" | "s16" => Kind::Signed(2),
            "i32" | "s32" => Kind::Signed(4),
            "i64" | "s64" => Kind::Signed(8),
            "f16" => Kind::F16,
            "bf16" => Kind::BF16,
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Kind::Unsigned(n) | Kind::Signed(n) => n as usize,
            Kind::F16 | Kind::BF16 => 2,
            Kind::F32 => 4,
            Kind::F64 => 8,
        }
    }

    fn float(self) -> bool {
        matches!(self, Kind::F16 | Kind::BF16 | Kind::F32 | Kind::F64)
    }

    /// The bits of a value.
    fn encode(self, v: f64) -> u64 {
        match self {
            Kind::Unsigned(_) => v as u64,
            Kind::Signed(_) => v as i64 as u64,
            Kind::F16 => f32_to_f16(v as f32).into(),
            Kind::BF16 => f32_to_bf16(v as f32).into(),
            Kind::F32 => (v as f32).to_bits().into(),
            Kind::F64 => v.to_bits(),
        }
    }

    /// The bits of a number as written, exact for integers of 64 bits.
    fn number(self, s: &str) -> Option<u64> {
        if self.float() {
            return s.parse::<f64>().ok().map(|v| self.encode(v));
        }
        let (neg, digits) = s.strip_prefix('-').map_or((false, s), |d| (true, d));
        let v = match digits.strip_prefix("0x") {
            Some(h) => u64::from_str_radix(h, 16).ok()?,
            None => digits.parse::<u64>().ok()?,
        };
        let v = if neg { i128::from(v).checked_neg()? } else { i128::from(v) };
        let bits = 8 * self.bytes() as u32;
        let (lo, hi) = match self {
            Kind::Signed(_) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            _ => (0, (1i128 << bits) - 1),
        };
        (lo..=hi).contains(&v).then_some(v as u64)
    }

    fn show(self, bits: u64) -> String {
        match self {
            Kind::Unsigned(_) => bits.to_string(),
            Kind::Signed(n) => {
                let s = 64 - 8 * n;
                ((bits << s) as i64 >> s).to_string()
            }
            Kind::F16 => f16_to_f32(bits as u16).to_string(),
            Kind::BF16 => bf16_to_f32(bits as u16).to_string(),
            Kind::F32 => f32::from_bits(bits as u32).to_string(),
            Kind::F64 => f64::from_bits(bits).to_string(),
        }
    }
}

struct Argument {
    kind: Kind,
    /// `None` for a scalar.
    length: Option<usize>,
    /// The array; or the scalar's bits in the first word.
    storage: Vec<Line>,
}

/// Arrays begin where the CUDA driver's allocations do, at multiples of 256 bytes, so that the sectors that a kernel
/// touches do not depend on where the host's allocator put them.
#[derive(Clone)]
#[repr(C, align(256))]
struct Line([u128; 16]);

impl Argument {
    /// The word that holds byte `at`, and the bit of it where that byte begins.
    fn place(at: usize) -> (usize, usize, usize) {
        (at / 256, at / 16 % 16, 8 * (at % 16))
    }
}

/// Arguments for each parameter of a kernel, owning their arrays.
pub struct Arguments {
    all: Vec<Argument>,
}

impl Arguments {
    /// Parses a comma-separated list; an empty one is no arguments.
    ///
    /// # Errors
    /// Names the argument that is wrong, and what may stand there.
    pub fn parse(text: &str) -> Result<Arguments, Error> {
        let mut all = vec![];
        for (k, item) in text.split(',').map(str::trim).enumerate() {
            if item.is_empty() && text.trim().is_empty() {
                break;
            }
            all.push(argument(item).map_err(|m| Error::new(format!("argument {k}, `{item}`: {m}")))?);
        }
        Ok(Arguments { all })
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The parameters of the launch.
    pub fn params(&self) -> Vec<Param> {
        self.all
            .iter()
            .map(|a| match a.length {
                Some(_) => Param::Pointer(a.storage.as_ptr() as u64),
                None => {
                    let bits = a.storage[0].0[0] as u64;
                    Param::Bytes(bits.to_le_bytes()[..a.kind.bytes()].to_vec())
                }
            })
            .collect()
    }

    /// Registers the arrays, named `argument 0` and on, for as long as `self` is borrowed by `f`.
    pub fn with_memory<T>(&mut self, f: impl FnOnce(&Arguments, &Memory) -> T) -> T {
        let mut memory = Memory::new();
        for (k, a) in self.all.iter_mut().enumerate() {
            if let Some(n) = a.length {
                let bytes = n * a.kind.bytes();
                // SAFETY: the storage is at least this long and lives, untouched by anyone else, while `f` runs.
                unsafe {
                    memory.register(a.storage.as_mut_ptr().cast(), bytes, &format!("argument {k}"), true)
                };
            }
        }
        f(self, &memory)
    }

    /// The first `limit` elements of argument `k` as text, or `None` if there is no such argument.
    pub fn show(&self, k: usize, limit: usize) -> Option<String> {
        let a = self.all.get(k)?;
        let size = a.kind.bytes();
        let n = a.length.unwrap_or(1);
        let item = |i: usize| {
            let (line, word, bit) = Argument::place(i * size);
            let bits = (a.storage[line].0[word] >> bit) as u64;
            a.kind.show(if size == 8 { bits } else { bits & ((1 << (8 * size)) - 1) })
        };
        let mut s = (0..n.min(limit)).map(item).collect::<Vec<_>>().join(" ");
        if n > limit {
            s += &format!(" … ({n} in all)");
        }
        Some(s)
    }
}

fn argument(item: &str) -> Result<Argument, String> {
    let form = "wanted TYPE[LENGTH]=FILLING or TYPE=NUMBER, such as f32[64]=rand:7 or i32=5";
    let (left, value) = item.split_once('=').ok_or(form)?;
    let (name, length) = match left.split_once('[') {
        Some((name, rest)) => {
            let n = rest.strip_suffix(']').and_then(|n| n.trim().parse::<usize>().ok()).ok_or(form)?;
            (name, Some(n))
        }
        None => (left, None),
    };
    let kind = Kind::parse(name.trim()).ok_or_else(|| {
        format!("no type `{}`; there are u8 to u64, i8 to i64, f16, bf16, f32 and f64", name.trim())
    })?;
    let value = value.trim();
    let Some(n) = length else {
        let bits = kind.number(value).ok_or_else(|| format!("`{value}` is no value of that type"))?;
        let mut line = Line([0; 16]);
        line.0[0] = bits.into();
        return Ok(Argument { kind, length, storage: vec![line] });
    };
    let size = kind.bytes();
    if n == 0 || n.checked_mul(size).is_none_or(|b| b > MAX_BYTES) {
        return Err(format!("an array of {n} elements"));
    }
    let seed = match value.split_once(':') {
        Some(("rand", s)) => Some(s.parse::<u64>().map_err(|_| format!("`{s}` is no seed"))?),
        _ if value == "rand" => Some(0),
        _ => None,
    };
    let mut state = seed.unwrap_or(0).wrapping_mul(0xda94_2042_e4dd_58b5);
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let constant = kind.number(value);
    let mut storage = vec![Line([0; 16]); (n * size).div_ceil(256)];
    for i in 0..n {
        let bits = match value {
            "zeros" => 0,
            "ones" => kind.encode(1.0),
            "iota" => kind.encode(i as f64),
            _ if seed.is_some() && kind.float() => {
                kind.encode((next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
            }
            _ if seed.is_some() => next() % 100,
            _ => constant.ok_or_else(|| {
                format!("no filling `{value}`; there are zeros, ones, iota, rand, rand:SEED, or a number")
            })?,
        };
        let bits = if size == 8 { bits } else { bits & ((1 << (8 * size)) - 1) };
        let (line, word, bit) = Argument::place(i * size);
        storage[line].0[word] |= u128::from(bits) << bit;
    }
    Ok(Argument { kind, length, storage })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillings_and_scalars() {
        let a = Arguments::parse("u32[5]=iota, f32[3]=ones,i8[2]=-3,f16[4]=rand:7,i64=-9223372036854775808")
            .unwrap();
        assert_eq!(a.len(), 5);
        let show = |k| a.show(k, 4).unwrap();
        assert_eq!(show(0), "0 1 2 3 … (5 in all)");
        assert_eq!((show(1), show(2)), ("1 1 1".to_string(), "-3 -3".to_string()));
        assert_eq!(show(4), i64::MIN.to_string());
        for v in show(3).split(' ') {
            assert!(v.parse::<f32>().unwrap().abs() <= 1.0);
        }
        assert_eq!(a.params()[4], Param::Bytes(i64::MIN.to_le_bytes().to_vec()));
        assert!(Arguments::parse("").unwrap().is_empty());
        let seeds = |s: &str| Arguments::parse(s).unwrap().show(0, 8).unwrap();
        assert_eq!(seeds("f32[8]=rand:7"), seeds("f32[8]=rand:7"));
        assert_ne!(seeds("f32[8]=rand:7"), seeds("f32[8]=rand:8"));
    }

    #[test]
    fn bad_arguments_say_what_may_stand_there() {
        for (bad, want) in [
            ("u33[4]=iota", "no type `u33`"),
            ("u32[x]=iota", "wanted TYPE"),
            ("u32", "wanted TYPE"),
            ("u32[0]=zeros", "0 elements"),
            ("u8=256", "no value"),
            ("f32[4]=random", "no filling `random`"),
            ("u32[4]=iota,", "argument 1"),
        ] {
            let e = Arguments::parse(bad).err().unwrap().to_string();
            assert!(e.contains(want), "{bad}: {e}");
        }
    }
}
