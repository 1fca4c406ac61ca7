//! Tensor maps: what `cp.async.bulk.tensor` needs to know of a tensor in global memory (PTX ISA §5.5).
//!
//! The 128 bytes that a GPU driver makes are opaque. Here they hold the fields of [`TensorMap`] plainly, so that a
//! host that runs a kernel in the simulator makes them with [`TensorMap::encode`].

use crate::ast::Ty;

/// How a box is laid out in shared memory (§5.5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    /// As is.
    None,
    /// 16-byte pieces exchanged within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl Swizzle {
    /// Bytes within which pieces are exchanged.
    pub fn width(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }

    /// A byte address in shared memory, swizzled: the bits from 7 up are added without carry to those from 4 up.
    pub fn apply(self, addr: u32) -> u32 {
        let bits = match self {
            Swizzle::None => 0,
            Swizzle::B32 => 1,
            Swizzle::B64 => 3,
            Swizzle::B128 => 7,
        };
        addr ^ (addr >> 7 & bits) << 4
    }
}

/// What the elements of a tensor are; the numbers are those of `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    BF16,
}

impl Element {
    const ALL: [(Element, &str, Ty); 10] = [
        (Element::U8, "u8", Ty::U8),
        (Element::U16, "u16", Ty::U16),
        (Element::U32, "u32", Ty::U32),
        (Element::S32, "s32", Ty::S32),
        (Element::U64, "u64", Ty::U64),
        (Element::S64, "s64", Ty::S64),
        (Element::F16, "f16", Ty::F16),
        (Element::F32, "f32", Ty::F32),
        (Element::F64, "f64", Ty::F64),
        (Element::BF16, "bf16", Ty::BF16),
    ];

    /// By its PTX name: `u8`, `u16`, `u32`, `s32`, `u64`, `s64`, `f16`, `bf16`, `f32`, `f64`.
    pub fn parse(name: &str) -> Option<Element> {
        Element::ALL.iter().find(|e| e.1 == name).map(|e| e.0)
    }

    /// By its number in `CUtensorMapDataType`.
    pub fn from_number(number: u32) -> Option<Element> {
        Element::ALL.get(number as usize).map(|e| e.0)
    }

    /// Size of an element.
    pub fn bytes(self) -> u32 {
        self.ty().bytes()
    }

    pub(crate) fn ty(self) -> Ty {
        Element::ALL[self as usize].2
    }

    /// What `nan_fill` writes outside the tensor; that of single precision is what an H100 writes.
    pub(crate) fn nan(self) -> u64 {
        match self {
            Element::F16 | Element::BF16 => 0x7fff,
            Element::F32 => 0x7ff7_7ff7,
            _ => 0x7fff_ffff_ffff_ffff,
        }
    }
}

/// A tensor in global memory and the box that one copy moves. Dimension 0 is the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Address of element 0.
    pub address: u64,
    /// What its elements are.
    pub element: Element,
    /// Elements by dimension, one to five of them.
    pub dims: Vec<u64>,
    /// Bytes between neighbours, for each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Extent of the box by dimension, in elements of the tensor.
    pub box_dims: Vec<u32>,
    /// Every how many-th element of the box is copied, by dimension (§5.5.3.3); the innermost is not looked at.
    pub element_strides: Vec<u32>,
    /// Layout in shared memory.
    pub swizzle: Swizzle,
    /// Elements outside the tensor read as NaN, not zero.
    pub nan_fill: bool,
}

/// The fields that `tensormap.replace` changes (§9.7.13.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Address,
    Rank,
    Box,
    Dim,
    Stride,
    ElementStride,
    Element,
    Interleave,
    Swizzle,
    SwizzleAtomicity,
    Fill,
}

const MAGIC: [u8; 4] = *b"tmap";
/// Where the bits of the sizes above the 32nd are: 2^32 has one.
const HIGH: usize = 83;

impl TensorMap {
    /// The 128 bytes to pass as the kernel's parameter.
    ///
    /// # Errors
    /// When a rule of §5.5 or of `cuTensorMapEncodeTiled` is broken: rank, up to 2^32 elements a dimension, a box of at most 256, strides that are
    /// multiples of 16 below 2^40, element strides of at most 8, rows of the box that are no multiples of 16 bytes, or wider than the swizzle.
    pub fn encode(&self) -> Result<Vec<u8>, crate::Error> {
        let n = self.dims.len();
        let bad = |m: String| Err(crate::Error::new(format!("tensor map: {m}")));
        let lengths = [self.strides.len() + 1, self.box_dims.len(), self.element_strides.len()];
        if !(1..=5).contains(&n) || lengths != [n; 3] {
            return bad(format!(
                "{n} dimensions, {} strides, {} box sizes and {} element strides",
                self.strides.len(),
                self.box_dims.len(),
                self.element_strides.len()
            ));
        }
        if !self.address.is_multiple_of(16) || self.strides.iter().any(|s| !s.is_multiple_of(16)) {
            return bad("address and strides must be multiples of 16".into());
        }
        if let Some(far) = self.strides.iter().find(|&&s| s >= 1 << 40) {
            return bad(format!("a stride of {} bytes: each must be from 0 to below 2^40", *far as i64));
        }
        if self.dims.iter().any(|n| !(1..=1 << 32).contains(n)) {
            return bad(format!("sizes {:?}: each must be from 1 to 2^32", self.dims));
        }
        if self.box_dims.iter().any(|b| !(1..=256).contains(b)) {
            return bad(format!("box {:?}: each size must be between 1 and 256", self.box_dims));
        }
        if self.element_strides.iter().any(|s| !(1..=8).contains(s)) {
            return bad(format!("element strides {:?}: each must be between 1 and 8", self.element_strides));
        }
        let row = self.row();
        if self.swizzle.width().is_some_and(|wide| row > wide) || !row.is_multiple_of(16) {
            return bad(format!("a box row of {row} bytes with swizzle {:?}", self.swizzle));
        }
        let mut b = MAGIC.to_vec();
        b.extend([n as u8, self.element as u8, self.swizzle as u8, u8::from(self.nan_fill)]);
        b.extend(self.address.to_le_bytes());
        for k in 0..5 {
            b.extend((self.dims.get(k).copied().unwrap_or(1) as u32).to_le_bytes());
            b.extend((self.box_dims.get(k).copied().unwrap_or(1) as u16).to_le_bytes());
        }
        for k in 0..4 {
            b.extend(self.strides.get(k).copied().unwrap_or(0).to_le_bytes());
        }
        b.extend(self.element_strides.iter().map(|&s| s as u8));
        b.resize(HIGH, 0);
        b.extend(self.dims.iter().map(|&n| (n >> 32) as u8));
        b.resize(128, 0);
        Ok(b)
    }

    /// Changes a field of an encoded map, or of 128 zeros, which become one.
    pub(crate) fn replace(b: &mut [u8; 128], field: Field, ord: u32, value: u64) -> Result<(), String> {
        if b.iter().all(|&x| x == 0) {
            b[..4].copy_from_slice(&MAGIC);
            b[4] = 1;
        }
        if b[..4] != MAGIC {
            return Err("tensormap.replace of memory that is neither a tensor map nor zero".into());
        }
        let count = if field == Field::Stride { 4 } else { 5 };
        if ord >= count {
            return Err(format!("a tensor map has {count} of this field; the index is {ord}"));
        }
        let k = ord as usize;
        let small = |most: u64, what: &str| match value <= most {
            true => Ok(value as u8),
            false => Err(format!("{value} is no {what} of a tensor map")),
        };
        match field {
            Field::Address => b[8..16].copy_from_slice(&value.to_le_bytes()),
            Field::Rank => b[4] = 1 + small(4, "rank (counted from 0)")?,
            Field::Box if (1..=256).contains(&value) => {
                b[20 + 6 * k..22 + 6 * k].copy_from_slice(&(value as u16).to_le_bytes());
            }
            Field::Box => return Err(format!("a box size of {value}: it must be between 1 and 256")),
            Field::Dim => {
                b[16 + 6 * k..20 + 6 * k].copy_from_slice(&(value as u32).to_le_bytes());
                b[HIGH + k] = 0;
            }
            Field::Stride if value.is_multiple_of(16) && value < 1 << 40 => {
                b[46 + 8 * k..54 + 8 * k].copy_from_slice(&value.to_le_bytes())
            }
            Field::Stride => {
                let bytes = value as i64;
                return Err(format!(
                    "a stride of {bytes} bytes: it must be a multiple of 16 from 0 to below 2^40"
                ));
            }
            Field::ElementStride => b[78 + k] = small(8, "element stride")?.max(1),
            // Table of §9.7.13.8: 8 is f32 with flushed denormals, 11 and 12 are tf32.
            Field::Element => {
                b[5] = match value {
                    0..=7 => value as u8,
                    8 | 11 | 12 => Element::F32 as u8,
                    9 => Element::F64 as u8,
                    10 => Element::BF16 as u8,
                    _ => return Err(format!("{value} is no element type of a tensor map")),
                }
            }
            Field::Interleave | Field::SwizzleAtomicity if value != 0 => {
                return Err(
                    "not supported yet: interleaved tensor maps, and swizzles of more than 16 bytes".into()
                );
            }
            Field::Interleave | Field::SwizzleAtomicity => {}
            Field::Swizzle => b[6] = small(3, "swizzle")?,
            Field::Fill => b[7] = small(1, "fill mode")?,
        }
        Ok(())
    }

    /// Reads what [`TensorMap::encode`] wrote.
    pub(crate) fn decode(b: &[u8; 128]) -> Option<TensorMap> {
        let n = b[4] as usize;
        if b[..4] != MAGIC || !(1..=5).contains(&n) {
            return None;
        }
        let element = Element::ALL.get(usize::from(b[5]))?.0;
        let u64_at = |k: usize| b[k..k + 8].iter().rev().fold(0u64, |v, x| v << 8 | u64::from(*x));
        let u32_at = |k: usize| b[k..k + 4].iter().rev().fold(0u32, |v, x| v << 8 | u32::from(*x));
        Some(TensorMap {
            element,
            swizzle: match b[6] {
                0 => Swizzle::None,
                1 => Swizzle::B32,
                2 => Swizzle::B64,
                _ => Swizzle::B128,
            },
            nan_fill: b[7] != 0,
            address: u64_at(8),
            dims: (0..n).map(|k| u64::from(u32_at(16 + 6 * k)) | u64::from(b[HIGH + k]) << 32).collect(),
            box_dims: (0..n).map(|k| u32::from(u16::from_le_bytes([b[20 + 6 * k], b[21 + 6 * k]]))).collect(),
            strides: (0..n - 1).map(|k| u64_at(46 + 8 * k)).collect(),
            element_strides: (0..n).map(|k| b[78 + k].into()).collect(),
        })
    }

    /// The step along a dimension.
    fn step(&self, d: usize) -> u32 {
        if d == 0 { 1 } else { self.element_strides[d] }
    }

    /// Elements copied along a dimension.
    fn copied(&self, d: usize) -> u32 {
        self.box_dims[d].div_ceil(self.step(d))
    }

    /// Bytes of a row of the box.
    fn row(&self) -> u32 {
        self.box_dims[0] * self.element.bytes()
    }

    /// Bytes between rows in shared memory: where they are narrower than the swizzle they begin at multiples of it.
    fn pitch(&self) -> u32 {
        self.swizzle.width().unwrap_or(0).max(self.row())
    }

    /// Bytes of shared memory that the box lies in.
    pub(crate) fn footprint(&self) -> u32 {
        (1..self.dims.len()).fold(self.pitch(), |bytes, d| bytes.saturating_mul(self.copied(d)))
    }

    /// Bytes that a copy moves.
    pub(crate) fn box_bytes(&self) -> u32 {
        (0..self.dims.len()).fold(self.element.bytes(), |bytes, d| bytes.saturating_mul(self.copied(d)))
    }

    /// Calls `f(offset in shared memory, global address or `None` outside the tensor)` for each element of the box at
    /// `coords`. A store writes whole pieces of 16 bytes, past the end of a row where it ends inside of one: so does an
    /// H100, though §5.5.1 has it that nothing is written outside.
    pub(crate) fn each(&self, coords: &[i32], store: bool, mut f: impl FnMut(u32, Option<u64>)) {
        let n = self.dims.len();
        let es = self.element.bytes();
        let (row, pitch) = (self.row(), self.pitch());
        let piece = if store { 16 / es } else { 1 };
        let end = |d: usize| self.dims[d].next_multiple_of(if d == 0 { piece.into() } else { 1 }) as i64;
        for k in 0..self.box_bytes() / es {
            let mut left = k;
            let mut addr = self.address;
            let mut inside = true;
            for d in 0..n {
                let n = self.copied(d);
                let x = i64::from(coords[d]) + i64::from(left % n * self.step(d));
                left /= n;
                inside &= (0..end(d)).contains(&x);
                let step = if d == 0 { u64::from(es) } else { self.strides[d - 1] };
                addr = addr.wrapping_add((x as u64).wrapping_mul(step));
            }
            let at = k * es;
            f(at / row * pitch + at % row, inside.then_some(addr));
        }
    }
}
