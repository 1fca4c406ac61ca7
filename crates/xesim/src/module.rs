//! What a SPIR-V module declares: types, constants, variables, imported functions, strings.

use crate::Error;
use crate::assembly::Assembly;
use rspirv::binary::Disassemble;
use rspirv::dr::{Function, Instruction, Module as Spirv, Operand};
use rspirv::spirv::{BuiltIn, Decoration, ExecutionMode, FPRoundingMode, LinkageType, Op, StorageClass};
use std::collections::{HashMap, HashSet};

/// A SPIR-V type, as far as kernels have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Bool,
    /// Bits.
    Int(u32),
    /// Bits.
    Float(u32),
    /// Element and how many.
    Vector(u32, u32),
    /// Element and how many.
    Array(u32, u64),
    /// Its fields, scalars or vectors.
    Struct(Vec<u32>),
    /// Where it points, and to what.
    Pointer(StorageClass, u32),
    Function,
}

/// A module with what its instructions refer to by id.
pub(crate) struct Module {
    pub spirv: Spirv,
    pub types: HashMap<u32, Type>,
    /// Type of each value.
    pub values: HashMap<u32, u32>,
    pub constants: HashMap<u32, Instruction>,
    pub variables: HashMap<u32, Instruction>,
    pub builtins: HashMap<u32, BuiltIn>,
    /// Name of each function that is imported.
    pub imports: HashMap<u32, String>,
    pub strings: HashMap<u32, String>,
    /// Inline assembly.
    pub assemblies: HashMap<u32, Assembly>,
    /// Conversions that round towards zero.
    pub cut: HashSet<u32>,
    /// Position in `spirv.functions`.
    functions: HashMap<u32, usize>,
}

impl Module {
    pub fn new(spirv: Spirv, assemblies: HashMap<u32, Assembly>) -> Result<Module, Error> {
        let mut m = Module {
            types: HashMap::new(),
            values: HashMap::new(),
            constants: HashMap::new(),
            variables: HashMap::new(),
            builtins: HashMap::new(),
            imports: HashMap::new(),
            strings: HashMap::new(),
            assemblies,
            cut: HashSet::new(),
            functions: HashMap::new(),
            spirv,
        };
        for i in &m.spirv.debug_string_source {
            if let (Op::String, Some(id), Some(Operand::LiteralString(s))) =
                (i.class.opcode, i.result_id, i.operands.first())
            {
                m.strings.insert(id, s.clone());
            }
        }
        for i in &m.spirv.annotations {
            match i.operands.as_slice() {
                [Operand::IdRef(id), Operand::Decoration(Decoration::BuiltIn), Operand::BuiltIn(b)] => {
                    m.builtins.insert(*id, *b);
                }
                [
                    Operand::IdRef(id),
                    Operand::Decoration(Decoration::FPRoundingMode),
                    Operand::FPRoundingMode(FPRoundingMode::RTZ),
                ] => {
                    m.cut.insert(*id);
                }
                [
                    Operand::IdRef(id),
                    Operand::Decoration(Decoration::LinkageAttributes),
                    Operand::LiteralString(name),
                    Operand::LinkageType(LinkageType::Import),
                ] => {
                    m.imports.insert(*id, name.clone());
                }
                _ => {}
            }
        }
        for (k, f) in m.spirv.functions.iter().enumerate() {
            if let Some(id) = f.def_id() {
                m.functions.insert(id, k);
            }
        }
        for i in m.spirv.all_inst_iter() {
            if let (Some(id), Some(ty)) = (i.result_id, i.result_type) {
                m.values.insert(id, ty);
            }
        }
        m.globals()?;
        Ok(m)
    }

    fn globals(&mut self) -> Result<(), Error> {
        for i in &self.spirv.types_global_values {
            let Some(id) = i.result_id else { continue };
            let ty = match i.class.opcode {
                Op::TypeVoid => Type::Void,
                Op::TypeBool => Type::Bool,
                Op::TypeInt => Type::Int(literal(i, 0)?),
                Op::TypeFloat => Type::Float(literal(i, 0)?),
                Op::TypeVector => match literal(i, 1)? {
                    n @ 2..=16 => Type::Vector(id_of(i, 0)?, n),
                    _ => return Err(unsupported(i, "a vector of this length")),
                },
                Op::TypeArray => {
                    let n = self.constants.get(&id_of(i, 1)?).and_then(whole);
                    Type::Array(id_of(i, 0)?, n.ok_or_else(|| unsupported(i, "an array of unknown length"))?)
                }
                Op::TypeStruct => {
                    Type::Struct((0..i.operands.len()).map(|k| id_of(i, k)).collect::<Result<_, _>>()?)
                }
                Op::TypePointer => {
                    let Some(Operand::StorageClass(class)) = i.operands.first() else {
                        return Err(malformed(i));
                    };
                    Type::Pointer(*class, id_of(i, 1)?)
                }
                Op::TypeFunction => Type::Function,
                Op::Variable => {
                    self.variables.insert(id, i.clone());
                    continue;
                }
                Op::Constant
                | Op::ConstantTrue
                | Op::ConstantFalse
                | Op::ConstantNull
                | Op::ConstantComposite
                | Op::Undef => {
                    self.constants.insert(id, i.clone());
                    continue;
                }
                Op::Line | Op::NoLine => continue,
                _ => return Err(unsupported(i, "this declaration")),
            };
            // What a type is made of stands before it, so that no type is within itself.
            let within: &[u32] = match &ty {
                Type::Vector(e, _) | Type::Array(e, _) => std::slice::from_ref(e),
                Type::Struct(fields) => fields,
                _ => &[],
            };
            if !within.iter().all(|e| self.types.contains_key(e)) {
                return Err(malformed(i));
            }
            self.types.insert(id, ty);
        }
        Ok(())
    }

    pub fn ty(&self, id: u32) -> Result<&Type, Error> {
        self.types.get(&id).ok_or_else(|| Error::new(format!("%{id} is no type of the module")))
    }

    /// Type of the elements of a vector, or of a scalar itself; and how many there are.
    pub fn elements(&self, id: u32) -> Result<(Type, usize), Error> {
        match self.ty(id)? {
            Type::Vector(e, n) => Ok((self.ty(*e)?.clone(), *n as usize)),
            t => Ok((t.clone(), 1)),
        }
    }

    /// The types of all elements of a value: of a scalar its own, of a structure those of its fields.
    pub fn parts(&self, id: u32) -> Result<Vec<Type>, Error> {
        match self.ty(id)? {
            Type::Struct(fields) => {
                let mut parts = vec![];
                for &field in fields {
                    let (e, n) = self.elements(field)?;
                    parts.extend(vec![e; n]);
                }
                Ok(parts)
            }
            _ => self.elements(id).map(|(e, n)| vec![e; n]),
        }
    }

    /// Bytes of a value in memory, from one to the next in an array.
    pub fn size(&self, id: u32) -> Result<u64, Error> {
        Ok(match self.ty(id)? {
            Type::Int(b) | Type::Float(b) => u64::from(*b) / 8,
            Type::Pointer(..) => 8,
            // A vector of three is stored as one of four (OpenCL C §6.1.5).
            Type::Vector(e, n) => self.size(*e)?.saturating_mul(if *n == 3 { 4 } else { u64::from(*n) }),
            Type::Array(e, n) => self.size(*e)?.saturating_mul(*n),
            t => return Err(Error::new(format!("not supported yet: {t:?} in memory"))),
        })
    }

    pub fn function(&self, id: u32) -> Option<&Function> {
        self.functions.get(&id).map(|&k| &self.spirv.functions[k])
    }

    /// The function of a kernel.
    pub fn kernel(&self, name: &str) -> Result<u32, Error> {
        let mut have = vec![];
        for e in &self.spirv.entry_points {
            if let [_, Operand::IdRef(id), Operand::LiteralString(n), ..] = e.operands.as_slice() {
                if n == name {
                    return Ok(*id);
                }
                have.push(n.as_str());
            }
        }
        Err(Error::new(format!("no kernel `{name}`; the module has {}", have.join(", "))))
    }

    /// The numbers of an execution mode of kernel `id`.
    pub fn mode(&self, id: u32, mode: ExecutionMode) -> Option<Vec<u32>> {
        self.spirv.execution_modes.iter().find_map(|i| match i.operands.as_slice() {
            [Operand::IdRef(of), Operand::ExecutionMode(m), rest @ ..] if *of == id && *m == mode => Some(
                rest.iter()
                    .filter_map(|o| match o {
                        Operand::LiteralBit32(v) => Some(*v),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => None,
        })
    }
}

/// An integer constant.
pub(crate) fn whole(i: &Instruction) -> Option<u64> {
    match (i.class.opcode, i.operands.first()) {
        (Op::Constant, Some(Operand::LiteralBit32(v))) => Some((*v).into()),
        (Op::Constant, Some(Operand::LiteralBit64(v))) => Some(*v),
        (Op::ConstantNull, _) => Some(0),
        _ => None,
    }
}

/// Operand `k`, which is an id.
pub(crate) fn id_of(i: &Instruction, k: usize) -> Result<u32, Error> {
    match i.operands.get(k) {
        Some(Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id)) => Ok(*id),
        _ => Err(malformed(i)),
    }
}

/// Operand `k`, which is a number.
pub(crate) fn literal(i: &Instruction, k: usize) -> Result<u32, Error> {
    match i.operands.get(k) {
        Some(Operand::LiteralBit32(v) | Operand::LiteralExtInstInteger(v)) => Ok(*v),
        _ => Err(malformed(i)),
    }
}

pub(crate) fn malformed(i: &Instruction) -> Error {
    Error::new(format!("malformed instruction `{}`", i.disassemble()))
}

pub(crate) fn unsupported(i: &Instruction, what: &str) -> Error {
    Error::new(format!("not supported yet: {what}: `{}`", i.disassemble()))
}
