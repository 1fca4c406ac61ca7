//! What values are in LLVM IR.

use tilewright_ir::{Attr, AttrKind, FloatKind, Module, Type, TypeKind};

/// A value that is written.
#[derive(Debug, Clone)]
pub enum Known {
    /// A number or pointer.
    Scalar {
        /// Its LLVM type.
        ty: String,
        /// A name or literal.
        value: String,
    },
    /// A tensor.
    Vector(Vector),
    /// A descriptor.
    Surface(Surface),
}

/// A matrix in memory as block messages take it.
#[derive(Debug, Clone)]
pub struct Surface {
    /// The operands of a message, with their types: base address, bytes of a row, rows, and bytes from row to row, the latter three less one.
    pub operands: Vec<String>,
}

/// A tensor in registers: blocks of `columns` columns, one behind the other, each row by row.
#[derive(Debug, Clone)]
pub struct Vector {
    /// Its extents.
    pub shape: Vec<u32>,
    /// Bits of an element of the tensor.
    pub bits: u32,
    /// The LLVM type of an element of the vector.
    pub element: String,
    /// Whether these are words of 32 bits, whatever the tensor's are.
    pub words: bool,
    /// Columns of a block.
    pub columns: u32,
    /// Whether a word has elements of as many rows in one column (VNNI), as the second operand of DPAS wants them.
    pub vnni: bool,
    /// Its name or literal.
    pub name: String,
}

impl Vector {
    /// A tensor of a type, by elements in row-major order.
    pub fn plain(m: &Module, ty: Type, element: String, name: String) -> Vector {
        let shape = m.shape(ty).unwrap_or(&[]).to_vec();
        let columns = shape.last().copied().unwrap_or(1);
        Vector { shape, bits: bits(m, ty), element, words: false, columns, vnni: false, name }
    }

    /// Elements of the tensor.
    pub fn count(&self) -> u32 {
        self.shape.iter().product()
    }

    /// Elements of the vector.
    pub fn length(&self) -> u32 {
        if self.words { self.count() * self.bits / 32 } else { self.count() }
    }

    /// Its LLVM type.
    pub fn ty(&self) -> String {
        format!("<{} x {}>", self.length(), self.element)
    }

    /// It with its type.
    pub fn typed(&self) -> String {
        format!("{} {}", self.ty(), self.name)
    }

    /// Whether its elements lie in row-major order.
    pub fn is_row_major(&self) -> bool {
        !self.vnni && self.shape.last().is_none_or(|&n| n == self.columns)
    }

    /// Elements of the tensor in one of the vector.
    pub fn per(&self) -> u32 {
        if self.words { 32 / self.bits } else { 1 }
    }

    /// The vector's indices of a part of a matrix that begins at a row and column, in the order of a vector that is arranged alike but has the part's columns
    /// in one block; `None` where an element of the vector is only partly in it.
    pub fn part(&self, [row, column]: [u32; 2], [rows, columns]: [u32; 2]) -> Option<Vec<u32>> {
        let &[height, _] = &self.shape[..] else { return None };
        let per = self.per();
        let (down, along) = if self.vnni { (per, 1) } else { (1, per) };
        if [row, rows].iter().any(|n| n % down != 0)
            || [column, columns, self.columns].iter().any(|n| n % along != 0)
        {
            return None;
        }
        let (line, block) = (self.columns / along, (height / down) * (self.columns / along));
        let mut indices = Vec::new();
        for r in (row / down)..(row + rows) / down {
            for c in (column / along)..(column + columns) / along {
                indices.push(c / line * block + r * line + c % line);
            }
        }
        Some(indices)
    }
}

/// Bits of a type's elements; those of a pointer are an address's.
pub fn bits(m: &Module, ty: Type) -> u32 {
    let element = m.element_type(ty);
    if m.is_ptr(element) { 64 } else { m.bits(element) }
}

/// Elements of a tensor, one of a scalar.
pub fn lanes(m: &Module, ty: Type) -> u32 {
    m.shape(ty).map_or(1, |shape| shape.iter().product())
}

/// The LLVM type of a scalar; `None` where it has none.
pub fn scalar_type(m: &Module, ty: Type) -> Option<String> {
    Some(match m.type_kind(ty) {
        TypeKind::Int(bits) => format!("i{bits}"),
        TypeKind::Index => "i64".to_string(),
        TypeKind::Float(FloatKind::F16) => "half".to_string(),
        TypeKind::Float(FloatKind::BF16) => "bfloat".to_string(),
        TypeKind::Float(FloatKind::F32) => "float".to_string(),
        TypeKind::Float(FloatKind::F64) => "double".to_string(),
        TypeKind::Ptr { address_space: 1, .. } => "ptr addrspace(1)".to_string(),
        _ => return None,
    })
}

/// A type as intrinsics have it in their names: `v128f32`.
pub fn mangled(length: u32, element: &str) -> String {
    let element = match element {
        "half" => "f16",
        "bfloat" => "bf16",
        "float" => "f32",
        "double" => "f64",
        other => other,
    };
    format!("v{length}{element}")
}

/// A number as LLVM writes it.
pub fn literal(m: &Module, attr: Attr) -> Option<String> {
    Some(match m.attr_kind(attr) {
        AttrKind::Bool(b) => b.to_string(),
        AttrKind::Int(n, ty) if *ty == Type::I1 => (*n != 0).to_string(),
        AttrKind::Int(n, _) => n.to_string(),
        AttrKind::Float(x, ty) => match *ty {
            Type::F16 => format!("0xH{:04X}", half::f16::from_f64(x.value()).to_bits()),
            Type::BF16 => format!("0xR{:04X}", half::bf16::from_f64(x.value()).to_bits()),
            Type::F32 | Type::F64 => format!("0x{:016X}", x.0),
            _ => return None,
        },
        _ => return None,
    })
}

/// A vector of literals.
pub fn array(element: &str, values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|v| format!("{element} {v}")).collect();
    format!("<{}>", values.join(", "))
}

/// A vector of indices with its type, as `shufflevector` takes it.
pub fn mask(indices: &[u32]) -> String {
    let values: Vec<String> = indices.iter().map(u32::to_string).collect();
    format!("<{} x i32> {}", indices.len(), array("i32", &values))
}

/// The type of an argument that is written with it: all of a vector's brackets, and two words of a pointer.
pub fn type_of(arg: &str) -> &str {
    let end = match arg.strip_prefix('<') {
        Some(rest) => rest.find('>').map_or(arg.len(), |at| at + 2),
        None if arg.starts_with("ptr addrspace(1) ") => "ptr addrspace(1)".len(),
        None => arg.find(' ').unwrap_or(arg.len()),
    };
    &arg[..end]
}
