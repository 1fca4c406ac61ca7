//! The types of per-thread values: scalars, short vectors and pointers.

/// An address space, numbered as NVPTX numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Generic addressing.
    Generic,
    /// Device memory.
    Global,
    /// Memory shared by the threads of a CTA; pointers have 32 bits.
    Shared,
    /// Shared memory of any CTA of the cluster, as [`Space::Shared`] to LLVM, which knows of no such space: what accesses it is
    /// inline assembly.
    Cluster,
    /// Memory of other ranks, which a library reaches; pointers are [`Space::Global`]'s to LLVM, and say in their upper bits whose memory it is.
    Symmetric,
    /// Constant memory.
    Const,
    /// A thread's own stack.
    Local,
}

impl Space {
    /// LLVM's number of the address space.
    pub fn number(self) -> u32 {
        match self {
            Space::Generic => 0,
            Space::Global | Space::Symmetric => 1,
            Space::Shared | Space::Cluster => 3,
            Space::Const => 4,
            Space::Local => 5,
        }
    }

    /// Bits of a pointer (shared, constant and local pointers are short).
    pub fn pointer_bits(self) -> u32 {
        match self {
            Space::Generic | Space::Global | Space::Symmetric => 64,
            Space::Shared | Space::Cluster | Space::Const | Space::Local => 32,
        }
    }
}

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// A predicate.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// An opaque pointer.
    Ptr(Space),
}

impl Scalar {
    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::I1 => 1,
            Scalar::I8 => 8,
            Scalar::I16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::F64 => 64,
            Scalar::Ptr(s) => s.pointer_bits(),
        }
    }

    /// Whether it is an integer (predicates included).
    pub fn is_int(self) -> bool {
        matches!(self, Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }

    /// The integer type of `bits` bits.
    ///
    /// Returns `None` unless `bits` is 1, 8, 16, 32 or 64.
    pub fn int(bits: u32) -> Option<Scalar> {
        Some(match bits {
            1 => Scalar::I1,
            8 => Scalar::I8,
            16 => Scalar::I16,
            32 => Scalar::I32,
            64 => Scalar::I64,
            _ => return None,
        })
    }

    /// The suffix LLVM uses to mangle overloaded intrinsics (`f32`, `i64`, `bf16`, `p3`).
    pub fn mangled(self) -> &'static str {
        match self {
            Scalar::I1 => "i1",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::Ptr(Space::Generic) => "p0",
            Scalar::Ptr(Space::Global | Space::Symmetric) => "p1",
            Scalar::Ptr(Space::Shared | Space::Cluster) => "p3",
            Scalar::Ptr(Space::Const) => "p4",
            Scalar::Ptr(Space::Local) => "p5",
        }
    }
}

/// A scalar (`lanes == 1`) or a short vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The element.
    pub scalar: Scalar,
    /// Number of elements.
    pub lanes: u8,
}

impl Ty {
    /// Predicate.
    pub const I1: Ty = Ty::scalar(Scalar::I1);
    /// 8-bit integer.
    pub const I8: Ty = Ty::scalar(Scalar::I8);
    /// 16-bit integer.
    pub const I16: Ty = Ty::scalar(Scalar::I16);
    /// 32-bit integer.
    pub const I32: Ty = Ty::scalar(Scalar::I32);
    /// 64-bit integer.
    pub const I64: Ty = Ty::scalar(Scalar::I64);
    /// IEEE binary16.
    pub const F16: Ty = Ty::scalar(Scalar::F16);
    /// bfloat16.
    pub const BF16: Ty = Ty::scalar(Scalar::BF16);
    /// IEEE binary32.
    pub const F32: Ty = Ty::scalar(Scalar::F32);
    /// IEEE binary64.
    pub const F64: Ty = Ty::scalar(Scalar::F64);
    /// Pointer to device memory.
    pub const GLOBAL: Ty = Ty::scalar(Scalar::Ptr(Space::Global));
    /// Pointer to shared memory.
    pub const SHARED: Ty = Ty::scalar(Scalar::Ptr(Space::Shared));
    /// A pointer to shared memory of a CTA of the cluster.
    pub const CLUSTER: Ty = Ty::scalar(Scalar::Ptr(Space::Cluster));
    /// Generic pointer.
    pub const PTR: Ty = Ty::scalar(Scalar::Ptr(Space::Generic));

    /// The type that LLVM's text calls so, where values have it.
    pub fn of_llvm(text: &str) -> Option<Ty> {
        Some(match text {
            "i1" => Ty::I1,
            "i8" => Ty::I8,
            "i16" => Ty::I16,
            "i32" => Ty::I32,
            "i64" => Ty::I64,
            "half" => Ty::F16,
            "bfloat" => Ty::BF16,
            "float" => Ty::F32,
            "double" => Ty::F64,
            "ptr" => Ty::PTR,
            "ptr addrspace(1)" => Ty::GLOBAL,
            "ptr addrspace(3)" => Ty::SHARED,
            _ => return None,
        })
    }

    /// A scalar type.
    pub const fn scalar(scalar: Scalar) -> Ty {
        Ty { scalar, lanes: 1 }
    }

    /// A vector type.
    pub const fn vector(scalar: Scalar, lanes: u8) -> Ty {
        Ty { scalar, lanes }
    }

    /// The element type as a `Ty`.
    pub const fn element(self) -> Ty {
        Ty::scalar(self.scalar)
    }

    /// The same shape with another element.
    pub const fn with(self, scalar: Scalar) -> Ty {
        Ty { scalar, lanes: self.lanes }
    }

    /// Total bits.
    pub fn bits(self) -> u32 {
        self.scalar.bits() * u32::from(self.lanes)
    }

    /// Whether the elements are integers.
    pub fn is_int(self) -> bool {
        self.scalar.is_int()
    }

    /// Whether the elements are floats.
    pub fn is_float(self) -> bool {
        self.scalar.is_float()
    }

    /// Whether the elements are pointers.
    pub fn is_ptr(self) -> bool {
        matches!(self.scalar, Scalar::Ptr(_))
    }

    /// The suffix LLVM uses to mangle overloaded intrinsics.
    pub fn mangled(self) -> String {
        if self.lanes == 1 {
            self.scalar.mangled().to_string()
        } else {
            format!("v{}{}", self.lanes, self.scalar.mangled())
        }
    }
}
