//! Types, constants and variables.

use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{BuiltIn, Capability, Decoration, FunctionControl, Op, StorageClass, Word};
use tilewright_llvm::{Scalar, Ty};

use super::{Emitter, Result};

/// The begin of a function.
pub(super) fn begin(id: Word, result: Word, ty: Word, control: FunctionControl) -> dr::Function {
    let mut function = dr::Function::new();
    let operands = vec![Operand::FunctionControl(control), Operand::IdRef(ty)];
    function.def = Some(Instruction::new(Op::Function, Some(result), Some(id), operands));
    function
}

/// A parameter of a function.
pub(super) fn parameter(id: Word, ty: Word) -> Instruction {
    Instruction::new(Op::FunctionParameter, Some(ty), Some(id), vec![])
}

/// An instruction without a result.
pub(super) fn plain(op: Op, operands: Vec<Operand>) -> Instruction {
    Instruction::new(op, None, None, operands)
}

/// What a value is in SPIR-V: pointers are integers, bf16 has no arithmetic.
pub(super) fn held(ty: Ty) -> Ty {
    match ty.scalar {
        Scalar::BF16 => ty.with(Scalar::I16),
        Scalar::Ptr(space) if space.pointer_bits() == 64 => ty.with(Scalar::I64),
        Scalar::Ptr(_) => ty.with(Scalar::I32),
        _ => ty,
    }
}

impl Emitter<'_> {
    /// A type.
    pub(super) fn ty(&mut self, ty: Ty) -> Result<Word> {
        let ty = held(ty);
        if let Some(&known) = self.types.get(&ty) {
            return Ok(known);
        }
        let made = if ty.lanes > 1 {
            match ty.lanes {
                2..=4 => {}
                8 | 16 => self.needs(Capability::Vector16),
                n => return Err(format!("vectors of {n} elements")),
            }
            let element = self.ty(ty.element())?;
            self.out.type_vector(element, u32::from(ty.lanes))
        } else {
            match ty.scalar {
                Scalar::I1 => self.out.type_bool(),
                Scalar::I8 => self.int(Capability::Int8, 8),
                Scalar::I16 => self.int(Capability::Int16, 16),
                Scalar::I32 => self.out.type_int(32, 0),
                Scalar::I64 => self.int(Capability::Int64, 64),
                Scalar::F16 => self.float(Capability::Float16, 16),
                Scalar::F32 => self.out.type_float(32),
                Scalar::F64 => self.float(Capability::Float64, 64),
                Scalar::BF16 | Scalar::Ptr(_) => return Err("this type".to_string()),
            }
        };
        self.types.insert(ty, made);
        Ok(made)
    }

    /// What a function returns: several values are a structure.
    pub(super) fn results(&mut self, types: &[Ty]) -> Result<Word> {
        match types {
            [] => Ok(self.out.type_void()),
            [one] => self.ty(*one),
            _ => {
                let fields = types.iter().map(|&ty| self.ty(ty)).collect::<Result<Vec<_>>>()?;
                Ok(self.out.type_struct(fields))
            }
        }
    }

    fn int(&mut self, capability: Capability, bits: u32) -> Word {
        self.needs(capability);
        self.out.type_int(bits, 0)
    }

    fn float(&mut self, capability: Capability, bits: u32) -> Word {
        self.needs(capability);
        self.out.type_float(bits)
    }

    /// The type of a pointer to a type in this memory.
    pub(super) fn pointer(&mut self, class: StorageClass, to: Ty) -> Result<Word> {
        let to = self.ty(to)?;
        Ok(self.out.type_pointer(None, class, to))
    }

    /// A constant by its bits, in all elements.
    pub(super) fn constant(&mut self, ty: Ty, bits: u64) -> Result<Word> {
        let ty = held(ty);
        if let Some(&known) = self.constants.get(&(ty, bits)) {
            return Ok(known);
        }
        let id = self.ty(ty)?;
        let made = if ty.lanes > 1 {
            let element = self.constant(ty.element(), bits)?;
            self.out.constant_composite(id, vec![element; usize::from(ty.lanes)])
        } else {
            match ty.scalar {
                Scalar::I1 if bits & 1 == 1 => self.out.constant_true(id),
                Scalar::I1 => self.out.constant_false(id),
                Scalar::I64 | Scalar::F64 => self.out.constant_bit64(id, bits),
                _ => self.out.constant_bit32(id, bits as u32),
            }
        };
        self.constants.insert((ty, bits), made);
        Ok(made)
    }

    /// A 32-bit number.
    pub(super) fn number(&mut self, n: u32) -> Result<Word> {
        self.constant(Ty::I32, u64::from(n))
    }

    /// A vector of constants.
    pub(super) fn constant_vector(&mut self, ty: Ty, elements: Vec<Word>) -> Result<Word> {
        let key = (held(ty), elements);
        if let Some(&known) = self.vectors.get(&key) {
            return Ok(known);
        }
        let id = self.ty(ty)?;
        let made = self.out.constant_composite(id, key.1.clone());
        self.vectors.insert(key, made);
        Ok(made)
    }

    /// Any value of a type.
    pub(super) fn undefined(&mut self, ty: Ty) -> Result<Word> {
        let id = self.ty(ty)?;
        Ok(self.out.undef(id, None))
    }

    /// A variable that the launch sets: it, and the type of what is loaded from it.
    pub(super) fn builtin(&mut self, builtin: BuiltIn) -> Result<(Word, Ty)> {
        if let Some(&known) = self.builtins.get(&builtin) {
            return Ok(known);
        }
        let vector =
            matches!(builtin, BuiltIn::LocalInvocationId | BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups);
        // Those of OpenCL's `size_t` have 64 bits here.
        let ty = if vector { Ty::vector(Scalar::I64, 3) } else { Ty::I32 };
        let pointer = self.pointer(StorageClass::Input, ty)?;
        let variable = self.out.variable(pointer, None, StorageClass::Input, None);
        self.out.decorate(variable, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
        self.out.decorate(variable, Decoration::Constant, []);
        self.builtins.insert(builtin, (variable, ty));
        Ok((variable, ty))
    }

    /// A table of the program's, global `number` of the module.
    pub(super) fn table(&mut self, number: usize, bytes: &[u8], align: u32) -> Result<Word> {
        if let Some(&known) = self.tables.get(&number) {
            return Ok(known);
        }
        let (words, rest) = bytes.as_chunks::<8>();
        let (element, values) = match rest {
            [] => (Ty::I64, words.iter().map(|word| u64::from_le_bytes(*word)).collect()),
            _ => (Ty::I8, bytes.iter().map(|&byte| u64::from(byte)).collect::<Vec<u64>>()),
        };
        let length = self.number(values.len() as u32)?;
        let values: Vec<Word> =
            values.into_iter().map(|bits| self.constant(element, bits)).collect::<Result<_>>()?;
        let element = self.ty(element)?;
        let array = self.out.type_array(element, length);
        let whole = self.out.constant_composite(array, values);
        let pointer = self.out.type_pointer(None, StorageClass::CrossWorkgroup, array);
        let variable = self.out.variable(pointer, None, StorageClass::CrossWorkgroup, Some(whole));
        self.out.decorate(variable, Decoration::Constant, []);
        self.out.decorate(variable, Decoration::Alignment, [Operand::LiteralBit32(align)]);
        self.tables.insert(number, variable);
        Ok(variable)
    }

    /// The array of all memory that a work group has together.
    pub(super) fn shared(&mut self) -> Result<Word> {
        if let Some(known) = self.shared {
            return Ok(known);
        }
        let byte = self.ty(Ty::I8)?;
        let bytes = self.number(self.options.shared_bytes.max(4))?;
        let array = self.out.type_array(byte, bytes);
        let pointer = self.out.type_pointer(None, StorageClass::Workgroup, array);
        let variable = self.out.variable(pointer, None, StorageClass::Workgroup, None);
        self.out.decorate(variable, Decoration::Alignment, [Operand::LiteralBit32(64)]);
        self.shared = Some(variable);
        Ok(variable)
    }
}
