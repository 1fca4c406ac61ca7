//! Element kinds: how a value is held in a register and in memory.
//!
//! Floats of at most 32 bits are held in registers as `f32` whose value is exactly representable in the narrow format;
//! every operation computes in `f32` and rounds back. Conversion to a wider format is then free, and one loop per
//! operation serves `f16`, `bf16`, the fp8 formats and `f32`.

use tilewright_ir::{FloatKind, Module, Type, TypeKind};

/// The kind of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elem {
    /// One byte, 0 or 1.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer, also `index`.
    I64,
    /// An address.
    Ptr,
    /// A floating-point number.
    Float(FloatKind),
}

impl Elem {
    /// The element kind of a type (the element's, for a tensor); `None` where the executor has no such kind.
    pub fn of(module: &Module, ty: Type) -> Option<Elem> {
        Some(match module.type_kind(module.element_type(ty)) {
            TypeKind::Int(1) => Elem::I1,
            TypeKind::Int(8) => Elem::I8,
            TypeKind::Int(16) => Elem::I16,
            TypeKind::Int(32) => Elem::I32,
            TypeKind::Int(64) | TypeKind::Index => Elem::I64,
            TypeKind::Ptr { pointee, .. } if !module.is_tensor(*pointee) => Elem::Ptr,
            TypeKind::Float(k) => Elem::Float(*k),
            _ => return None,
        })
    }

    /// Bytes per element in a register.
    pub fn reg_size(self) -> usize {
        match self {
            Elem::I1 | Elem::I8 => 1,
            Elem::I16 => 2,
            Elem::I32 => 4,
            Elem::I64 | Elem::Ptr | Elem::Float(FloatKind::F64) => 8,
            Elem::Float(_) => 4,
        }
    }

    /// Bytes per element in memory.
    pub fn mem_size(self) -> usize {
        match self {
            Elem::Float(k) => k.bits() as usize / 8,
            other => other.reg_size(),
        }
    }

    /// Bits of a value.
    pub fn bits(self) -> u32 {
        if self == Elem::I1 { 1 } else { 8 * self.mem_size() as u32 }
    }

    /// Whether registers hold it as `f32`.
    pub fn is_f32_class(self) -> bool {
        matches!(self, Elem::Float(k) if k != FloatKind::F64)
    }

    /// Whether it is an integer (addresses are not).
    pub fn is_int(self) -> bool {
        !matches!(self, Elem::Ptr | Elem::Float(_))
    }

    /// The smallest and largest value of the kind read as a signed integer.
    pub fn signed_range(self) -> (i64, i64) {
        match self {
            Elem::I1 => (0, 1),
            Elem::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
            Elem::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Elem::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// The bits of a register element of this kind, from its low bytes: integers sign-extended, `i1` as 0 or 1.
    pub fn canonical(self, bits: u64) -> u64 {
        match self {
            Elem::I1 => bits & 1,
            Elem::I8 => bits as i8 as i64 as u64,
            Elem::I16 => bits as i16 as i64 as u64,
            Elem::I32 => bits as i32 as i64 as u64,
            Elem::I64 | Elem::Ptr | Elem::Float(FloatKind::F64) => bits,
            Elem::Float(_) => bits & 0xffff_ffff,
        }
    }

    /// The spelling in messages.
    pub fn name(self) -> &'static str {
        match self {
            Elem::I1 => "i1",
            Elem::I8 => "i8",
            Elem::I16 => "i16",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::Ptr => "pointer",
            Elem::Float(k) => k.name(),
        }
    }
}
