//! The language's types: what `x.dtype`, `x.type` and a signature name.
//!
//! They differ from IR types in that integers carry a signedness (`tl.uint32` and `tl.int32` are one `i32` in the
//! IR); the front end picks signed or unsigned ops from them.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{FloatKind, float};

/// A scalar type of the language (`tl.float16`, `tl.uint8`, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// No value.
    Void,
    /// `tl.int1`, a boolean.
    Int1,
    /// `tl.int8`.
    Int8,
    /// `tl.int16`.
    Int16,
    /// `tl.int32`.
    Int32,
    /// `tl.int64`.
    Int64,
    /// `tl.uint8`.
    UInt8,
    /// `tl.uint16`.
    UInt16,
    /// `tl.uint32`.
    UInt32,
    /// `tl.uint64`.
    UInt64,
    /// `tl.float8e5` (OCP E5M2).
    Fp8E5,
    /// `tl.float8e5b16` (E5M2 FNUZ).
    Fp8E5B16,
    /// `tl.float8e4nv` (OCP E4M3FN).
    Fp8E4Nv,
    /// `tl.float8e4b8` (E4M3 FNUZ).
    Fp8E4B8,
    /// `tl.float8e4b15` (E4M3 with bias 15).
    Fp8E4B15,
    /// `tl.float16`.
    Fp16,
    /// `tl.bfloat16`.
    Bf16,
    /// `tl.float32`.
    Fp32,
    /// `tl.float64`.
    Fp64,
}

/// The kinds that type promotion orders: bool < integer < floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `int1`.
    Boolean,
    /// Every other integer.
    Integral,
    /// Every float.
    Floating,
}

impl Scalar {
    /// Every scalar type.
    pub const ALL: [Scalar; 19] = [
        Scalar::Void,
        Scalar::Int1,
        Scalar::Int8,
        Scalar::Int16,
        Scalar::Int32,
        Scalar::Int64,
        Scalar::UInt8,
        Scalar::UInt16,
        Scalar::UInt32,
        Scalar::UInt64,
        Scalar::Fp8E5,
        Scalar::Fp8E5B16,
        Scalar::Fp8E4Nv,
        Scalar::Fp8E4B8,
        Scalar::Fp8E4B15,
        Scalar::Fp16,
        Scalar::Bf16,
        Scalar::Fp32,
        Scalar::Fp64,
    ];

    /// The name that `dtype.name` and `str(dtype)` give (`fp16`, `int32`, …).
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Void => "void",
            Scalar::Int1 => "int1",
            Scalar::Int8 => "int8",
            Scalar::Int16 => "int16",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            Scalar::UInt8 => "uint8",
            Scalar::UInt16 => "uint16",
            Scalar::UInt32 => "uint32",
            Scalar::UInt64 => "uint64",
            Scalar::Fp8E5 => "fp8e5",
            Scalar::Fp8E5B16 => "fp8e5b16",
            Scalar::Fp8E4Nv => "fp8e4nv",
            Scalar::Fp8E4B8 => "fp8e4b8",
            Scalar::Fp8E4B15 => "fp8e4b15",
            Scalar::Fp16 => "fp16",
            Scalar::Bf16 => "bf16",
            Scalar::Fp32 => "fp32",
            Scalar::Fp64 => "fp64",
        }
    }

    /// The short name that signatures use (`fp16`, `i32`, `u8`, …).
    pub fn signature_name(self) -> &'static str {
        match self {
            Scalar::Int1 => "i1",
            Scalar::Int8 => "i8",
            Scalar::Int16 => "i16",
            Scalar::Int32 => "i32",
            Scalar::Int64 => "i64",
            Scalar::UInt8 => "u8",
            Scalar::UInt16 => "u16",
            Scalar::UInt32 => "u32",
            Scalar::UInt64 => "u64",
            other => other.name(),
        }
    }

    /// The scalar type that any of its spellings names: a signature's (`i32`, `fp16`), `dtype.name`'s (`int32`) or
    /// the attribute of `tl` (`float16`, `float8e4nv`).
    pub fn parse(name: &str) -> Option<Scalar> {
        let short = match name {
            "u1" | "B" | "bool" | "uint1" => return Some(Scalar::Int1),
            "float64" | "f64" => return Some(Scalar::Fp64),
            "float32" | "f32" => return Some(Scalar::Fp32),
            "float16" | "f16" => return Some(Scalar::Fp16),
            "bfloat16" => return Some(Scalar::Bf16),
            "fp8e4m3fn" => return Some(Scalar::Fp8E4Nv),
            "fp8e5m2" => return Some(Scalar::Fp8E5),
            _ => name.strip_prefix("float8").map(|rest| format!("fp8{rest}")),
        };
        let wanted = short.as_deref().unwrap_or(name);
        Scalar::ALL.into_iter().find(|s| s.name() == wanted || s.signature_name() == wanted)
    }

    /// The IR's format of a floating-point type.
    pub fn format(self) -> Option<FloatKind> {
        Some(match self {
            Scalar::Fp8E5 => FloatKind::F8E5M2,
            Scalar::Fp8E5B16 => FloatKind::F8E5M2FNUZ,
            Scalar::Fp8E4Nv => FloatKind::F8E4M3FN,
            Scalar::Fp8E4B8 => FloatKind::F8E4M3FNUZ,
            Scalar::Fp8E4B15 => FloatKind::F8E4M3B11FNUZ,
            Scalar::Fp16 => FloatKind::F16,
            Scalar::Bf16 => FloatKind::BF16,
            Scalar::Fp32 => FloatKind::F32,
            Scalar::Fp64 => FloatKind::F64,
            _ => return None,
        })
    }

    /// Bits of one element (`dtype.primitive_bitwidth`; 0 for void).
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Void => 0,
            Scalar::Int1 => 1,
            Scalar::Int8 | Scalar::UInt8 => 8,
            Scalar::Int16 | Scalar::UInt16 => 16,
            Scalar::Int32 | Scalar::UInt32 => 32,
            Scalar::Int64 | Scalar::UInt64 => 64,
            _ => self.format().map_or(0, FloatKind::bits),
        }
    }

    /// Floating point, fp8 included.
    pub fn is_float(self) -> bool {
        self.format().is_some()
    }

    /// One of the 8-bit floats.
    pub fn is_fp8(self) -> bool {
        self.is_float() && self.bits() == 8
    }

    /// fp16, bf16, fp32 or fp64.
    pub fn is_standard_float(self) -> bool {
        self.is_float() && self.bits() > 8
    }

    /// An integer, booleans included.
    pub fn is_int(self) -> bool {
        self != Scalar::Void && !self.is_float()
    }

    /// `uint8` … `uint64`, and as in Triton `int1`.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Scalar::Int1 | Scalar::UInt8 | Scalar::UInt16 | Scalar::UInt32 | Scalar::UInt64)
    }

    /// `int8` … `int64`.
    pub fn is_signed(self) -> bool {
        self.is_int() && !self.is_unsigned()
    }

    /// Where the type stands in promotion.
    pub fn kind(self) -> Kind {
        if self.is_float() {
            Kind::Floating
        } else if self == Scalar::Int1 {
            Kind::Boolean
        } else {
            Kind::Integral
        }
    }

    /// Bits of the mantissa (floats), without the hidden one.
    pub fn mantissa_bits(self) -> u32 {
        self.format().map_or(0, |kind| float::format(kind).mantissa_bits)
    }

    /// What is subtracted from the stored exponent (floats).
    pub fn exponent_bias(self) -> i32 {
        match self {
            // As Triton says. The IR's format, which is MLIR's, is the nearest that it has.
            Scalar::Fp8E4B15 => 15,
            _ => self.format().map_or(0, |kind| float::format(kind).bias),
        }
    }

    /// The smallest and largest value of an integer type.
    pub fn int_range(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_unsigned() {
            (0, (1i128 << bits) - 1)
        } else if bits == 0 {
            (0, 0)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        }
    }

    /// The signed integer of the given width.
    pub fn signed(bits: u32) -> Option<Scalar> {
        Some(match bits {
            1 => Scalar::Int1,
            8 => Scalar::Int8,
            16 => Scalar::Int16,
            32 => Scalar::Int32,
            64 => Scalar::Int64,
            _ => return None,
        })
    }

    /// The unsigned integer of the given width.
    pub fn unsigned(bits: u32) -> Option<Scalar> {
        Some(match bits {
            8 => Scalar::UInt8,
            16 => Scalar::UInt16,
            32 => Scalar::UInt32,
            64 => Scalar::UInt64,
            _ => return None,
        })
    }
}

/// How many pointers and blocks a type may be nested in: what walks a type recurses.
pub const MAX_NESTING: usize = 64;

/// What a pointer points at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PointerType {
    /// Type of the element.
    pub element: DType,
    /// 1 is global memory; Triton's default.
    pub address_space: u32,
    /// A pointer that may not be stored through (`*k` in signatures).
    pub constant: bool,
}

/// A type of the language: a scalar, a pointer, or a block (tensor) of either.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DType {
    /// A number.
    Scalar(Scalar),
    /// A pointer.
    Pointer(Arc<PointerType>),
    /// A tensor type, as `x.type` gives: element and shape.
    Block(Arc<(DType, Vec<i64>)>),
}

impl DType {
    /// A pointer to `element` in global memory.
    pub fn pointer_to(element: DType) -> DType {
        DType::Pointer(Arc::new(PointerType { element, address_space: 1, constant: false }))
    }

    /// A block of `element`, or `element` itself for an empty shape.
    pub fn block(element: DType, shape: Vec<i64>) -> DType {
        if shape.is_empty() { element } else { DType::Block(Arc::new((element, shape))) }
    }

    /// Refuses a type that is nested too deeply. Whoever lets users nest types asks this at each level.
    ///
    /// # Errors
    /// What is wrong, for a message.
    pub fn shallow(self) -> Result<DType, String> {
        let mut inner = &self;
        for _ in 0..=MAX_NESTING {
            inner = match inner {
                DType::Scalar(_) => return Ok(self),
                DType::Pointer(p) => &p.element,
                DType::Block(b) => &b.0,
            };
        }
        Err(format!("a type is nested more than {MAX_NESTING} deep"))
    }

    /// The type of one element (the type itself for a scalar).
    pub fn scalar(&self) -> &DType {
        match self {
            DType::Block(block) => &block.0,
            other => other,
        }
    }

    /// The scalar type of the elements, none for pointers.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self.scalar() {
            DType::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// The pointer type of the elements, none for numbers.
    pub fn as_pointer(&self) -> Option<&Arc<PointerType>> {
        match self.scalar() {
            DType::Pointer(p) => Some(p),
            _ => None,
        }
    }

    /// The shape; empty for a scalar.
    pub fn shape(&self) -> &[i64] {
        match self {
            DType::Block(block) => &block.1,
            _ => &[],
        }
    }

    /// Whether the elements are pointers.
    pub fn is_pointer(&self) -> bool {
        self.as_pointer().is_some()
    }

    /// The type with the same shape and other elements.
    pub fn with_element(&self, element: DType) -> DType {
        DType::block(element, self.shape().to_vec())
    }

    /// Bits of one element (64 for pointers).
    pub fn bits(&self) -> u32 {
        self.as_scalar().map_or(64, Scalar::bits)
    }
}

impl From<Scalar> for DType {
    fn from(scalar: Scalar) -> DType {
        DType::Scalar(scalar)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Scalar(s) => s.fmt(f),
            DType::Pointer(p) if p.constant => write!(f, "const pointer<{}>", p.element),
            DType::Pointer(p) => write!(f, "pointer<{}>", p.element),
            DType::Block(block) => {
                let shape: Vec<String> = block.1.iter().map(i64::to_string).collect();
                write!(f, "<[{}], {}>", shape.join(", "), block.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_scalar_parses() {
        for s in Scalar::ALL {
            assert_eq!(Scalar::parse(s.name()), Some(s));
            assert_eq!(Scalar::parse(s.signature_name()), Some(s));
        }
        assert_eq!(Scalar::parse("float8e4nv"), Some(Scalar::Fp8E4Nv));
        assert_eq!(Scalar::parse("float16"), Some(Scalar::Fp16));
        assert_eq!(Scalar::parse("bfloat16"), Some(Scalar::Bf16));
        assert_eq!(Scalar::parse("float17"), None);
    }

    #[test]
    fn block_of_nothing_is_a_scalar() {
        let ty = DType::block(Scalar::Fp16.into(), vec![]);
        assert_eq!(ty, DType::Scalar(Scalar::Fp16));
        assert_eq!(DType::block(Scalar::Int32.into(), vec![4, 8]).to_string(), "<[4, 8], int32>");
    }
}
