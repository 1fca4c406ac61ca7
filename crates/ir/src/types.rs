//! Types. A [`Type`] is a `Copy` reference to a uniqued [`TypeKind`]; the common scalars are constants on [`Type`].

use smallvec::SmallVec;

use crate::entity::{Attr, Type};

/// The address space of pointers to shared memory of any CTA of the cluster.
pub const REMOTE: u32 = 7;

/// The address space of pointers to the symmetric memory of ranks that a library reaches, not the hardware: the address of the place in this rank's own, and
/// in bits 48 to 63 which rank's it is, counted from 1.
pub const SYMMETRIC: u32 = 8;

/// A tensor shape: one extent per dimension. Extents need not be powers of two.
pub type Shape = SmallVec<[u32; 4]>;

/// The floating-point formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the formats' own
pub enum FloatKind {
    F8E4M3FN,
    F8E5M2,
    F8E4M3FNUZ,
    F8E5M2FNUZ,
    F8E4M3B11FNUZ,
    F16,
    BF16,
    F32,
    F64,
}

impl FloatKind {
    /// The width in bits.
    pub fn bits(self) -> u32 {
        match self {
            FloatKind::F16 | FloatKind::BF16 => 16,
            FloatKind::F32 => 32,
            FloatKind::F64 => 64,
            _ => 8,
        }
    }

    /// MLIR's spelling.
    pub fn name(self) -> &'static str {
        match self {
            FloatKind::F8E4M3FN => "f8E4M3FN",
            FloatKind::F8E5M2 => "f8E5M2",
            FloatKind::F8E4M3FNUZ => "f8E4M3FNUZ",
            FloatKind::F8E5M2FNUZ => "f8E5M2FNUZ",
            FloatKind::F8E4M3B11FNUZ => "f8E4M3B11FNUZ",
            FloatKind::F16 => "f16",
            FloatKind::BF16 => "bf16",
            FloatKind::F32 => "f32",
            FloatKind::F64 => "f64",
        }
    }
}

/// What has elements in a shape that may be known at run time only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    /// Elements that are values. One whose shape is known is a [`TypeKind::Tensor`].
    Tensor,
    /// Elements in memory.
    MemRef,
    /// Elements that one operation takes at once.
    Vector,
}

impl Container {
    /// The word in IR text.
    pub fn name(self) -> &'static str {
        match self {
            Container::Tensor => "tensor",
            Container::MemRef => "memref",
            Container::Vector => "vector",
        }
    }
}

/// What a [`Type`] is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// A signless integer of the given width.
    Int(u16),
    /// A floating-point number.
    Float(FloatKind),
    /// `index`
    Index,
    /// `!tt.ptr<pointee, address_space>`; the address space is 1 (global) unless said otherwise.
    Ptr {
        /// What it points to (a scalar, or a tensor for a block pointer).
        pointee: Type,
        /// 1 = global, 3 = shared, 7 ([`REMOTE`]) = shared memory of a CTA of the cluster, 8 ([`SYMMETRIC`]) = that of other ranks.
        address_space: u32,
    },
    /// `tensor<shape x element, encoding>`
    Tensor {
        /// Extents.
        shape: Shape,
        /// Scalar or pointer.
        element: Type,
        /// The layout; absent in `tt` modules.
        encoding: Option<Attr>,
    },
    /// `!ttg.memdesc<shape x element, encoding, #memory_space, mutable>`: a buffer.
    MemDesc {
        /// Extents of this view.
        shape: Shape,
        /// Scalar.
        element: Type,
        /// How the buffer is arranged; absent in `tt` modules.
        encoding: Option<Attr>,
        /// The memory space (an open attribute, such as `#ttg.shared_memory`).
        memory_space: Attr,
        /// Whether it may be written after its allocation.
        mutable: bool,
        /// Extents of the allocation that this is a view of, where they differ.
        alloc_shape: Option<Shape>,
    },
    /// `!ttg.async.token`
    AsyncToken,
    /// `!ttg.ring`: slots that a writer fills and readers empty in turn (see [`ttg`](crate::dialect::ttg)).
    Ring,
    /// `!tt.tensordesc<tensor<...>>`
    TensorDesc {
        /// The block that one access moves.
        block: Type,
    },
    /// `(inputs) -> results`
    Function {
        /// Parameter types.
        inputs: Vec<Type>,
        /// Result types.
        results: Vec<Type>,
    },
    /// `memref<4x?xf32, rest>`, `vector<4xf32>`, `tensor<?xf32>`: types of accelerators' code, of which nothing but shape and elements is modelled.
    Shaped {
        /// What it is.
        container: Container,
        /// Extents; what is known at run time is `None`.
        shape: SmallVec<[Option<u32>; 4]>,
        /// What the elements are.
        element: Type,
        /// The text behind the elements, with its comma: strides, memory space, encoding.
        rest: String,
    },
    /// A type of a dialect that we do not model, kept as its text (`!foo.bar<...>`).
    Opaque(String),
}
