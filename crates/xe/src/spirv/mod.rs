//! SPIR-V of a per-thread program, for Intel's offline compiler.
//!
//! In: what [`crate::lower`] records ([`tilewright_llvm::View`]). Out: a module of SPIR-V 1.2 for OpenCL, a kernel and the functions that it calls.
//!
//! - A pointer is an integer: of 64 bits to global memory, of 32 into the one array of the work group's memory. It becomes a pointer of SPIR-V
//!   where it is accessed, since pointers there say what they point to.
//! - A block is a block, and its parameters are phis; a kernel needs no merge instructions. Parameters that are only ever one vector together
//!   (the accumulators of a product) are one phi: as many would each be copied.
//! - bf16 goes by as 16 bits, and is computed with as fp32.
//! - Functions of Intel's compiler are imported by name.
//!
//! `types` has declarations, `function` walks a function's blocks, `ops` has arithmetic, `memory` accesses and atomics, `intrinsics` what has a
//! name, `phis` finds the parameters that are vectors.

mod debug;
mod function;
mod intrinsics;
mod memory;
mod ops;
mod phis;
mod types;

use std::collections::HashMap;

use rspirv::binary::Assemble;
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    LinkageType, MemoryModel, Op, Word,
};
use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;
use tilewright_llvm::{Function, Loc, Module, Ty, View};

/// What a module is made for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads of a sub-group.
    pub sub_group: u32,
    /// Bytes of memory that a work group has together.
    pub shared_bytes: u32,
    /// Whether separate multiplications and additions may become fused ones.
    pub contract: bool,
}

/// What inline assembly is for.
const TARGET: &str = "spir64-unknown-unknown";

/// What emitting gives: a message without its place.
type Result<T> = std::result::Result<T, String>;

/// Writes a module as SPIR-V.
///
/// # Errors
/// What there is no SPIR-V for yet, with its place in the source where that is known.
pub fn emit(module: &Module, options: &Options) -> std::result::Result<Vec<u8>, Diagnostic> {
    let mut emitter = Emitter::new(module, options);
    for function in &module.functions {
        let mut at = Loc::NONE;
        emitter.function(function, &mut at).map_err(|text| {
            let place = View::new(module, function).file(at).map(|(folder, file)| match folder.as_str() {
                "" => format!("{file}:{}: ", at.line),
                folder => format!("{folder}/{file}:{}: ", at.line),
            });
            let text = format!("{}not supported yet: {text}", place.unwrap_or_default());
            Diagnostic::new(text).of(Kind::Unsupported)
        })?;
    }
    Ok(emitter.finish())
}

/// A module that is being written.
struct Emitter<'m> {
    module: &'m Module,
    options: &'m Options,
    /// Declarations go here; functions are put together one by one.
    out: dr::Builder,
    /// The functions of `OpenCL.std`.
    cl: Word,
    types: HashMap<Ty, Word>,
    constants: HashMap<(Ty, u64), Word>,
    vectors: HashMap<(Ty, Vec<Word>), Word>,
    builtins: HashMap<BuiltIn, (Word, Ty)>,
    functions: HashMap<String, Word>,
    imports: HashMap<String, Word>,
    assemblies: HashMap<String, Word>,
    files: HashMap<u32, Word>,
    description: debug::Description,
    shared: Option<Word>,
    /// The program's tables, by their numbers in the module.
    tables: HashMap<usize, Word>,
    bodies: Vec<dr::Function>,
}

impl<'m> Emitter<'m> {
    fn new(module: &'m Module, options: &'m Options) -> Emitter<'m> {
        let mut out = dr::Builder::new();
        out.set_version(1, 2);
        for capability in [Capability::Addresses, Capability::Kernel, Capability::SubgroupDispatch] {
            out.capability(capability);
        }
        out.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        let cl = out.ext_inst_import("OpenCL.std");
        let functions = module.functions.iter().map(|f| (f.name.clone(), out.id())).collect();
        Emitter {
            module,
            options,
            out,
            cl,
            types: HashMap::new(),
            constants: HashMap::new(),
            vectors: HashMap::new(),
            builtins: HashMap::new(),
            functions,
            imports: HashMap::new(),
            assemblies: HashMap::new(),
            files: HashMap::new(),
            description: debug::Description::default(),
            shared: None,
            tables: HashMap::new(),
            bodies: Vec::new(),
        }
    }

    /// Says that the module needs something of the machine.
    fn needs(&mut self, capability: Capability) {
        let operand = Operand::Capability(capability);
        if !self.out.module_ref().capabilities.iter().any(|i| i.operands[0] == operand) {
            self.out.capability(capability);
        }
    }

    fn extension(&mut self, name: &str) {
        let operand = Operand::LiteralString(name.to_string());
        if !self.out.module_ref().extensions.iter().any(|i| i.operands[0] == operand) {
            self.out.extension(name);
        }
    }

    /// The kernel's entry, once its function is there.
    fn entry_point(&mut self, function: &Function, id: Word) {
        let Some(attrs) = &function.kernel else { return };
        let interface: Vec<Word> = self.builtins.values().map(|(variable, _)| *variable).collect();
        let mut interface = interface;
        interface.sort_unstable();
        self.out.entry_point(ExecutionModel::Kernel, id, function.name.clone(), interface);
        self.out.execution_mode(id, ExecutionMode::SubgroupSize, [self.options.sub_group]);
        if attrs.threads != 0 {
            self.out.execution_mode(id, ExecutionMode::LocalSize, [attrs.threads, 1, 1]);
        }
        if !self.options.contract {
            self.out.execution_mode(id, ExecutionMode::ContractionOff, []);
        }
    }

    /// A function of Intel's compiler.
    fn import(&mut self, name: &str, params: &[Ty], result: Option<Ty>) -> Result<Word> {
        if let Some(&known) = self.imports.get(name) {
            return Ok(known);
        }
        self.needs(Capability::Linkage);
        let result = match result {
            Some(ty) => self.ty(ty)?,
            None => self.out.type_void(),
        };
        let params: Vec<Word> = params.iter().map(|&ty| self.ty(ty)).collect::<Result<_>>()?;
        let ty = self.out.type_function(result, params.clone());
        let id = self.out.id();
        let mut function = types::begin(id, result, ty, FunctionControl::NONE);
        for param in params {
            let id = self.out.id();
            function.parameters.push(types::parameter(id, param));
        }
        function.end = Some(types::plain(rspirv::spirv::Op::FunctionEnd, vec![]));
        let linkage = [Operand::LiteralString(name.to_string()), Operand::LinkageType(LinkageType::Import)];
        self.out.decorate(id, Decoration::LinkageAttributes, linkage);
        // Declarations stand before definitions.
        self.bodies.insert(self.imports.len(), function);
        self.imports.insert(name.to_string(), id);
        Ok(id)
    }

    /// Inline assembly, its text and what it says of its operands. With effects it stays where it stands, even unused.
    fn assembly(
        &mut self,
        (text, constraints): (&str, &str),
        params: &[Ty],
        result: Option<Ty>,
        effects: bool,
    ) -> Result<Word> {
        let key = format!("{text}\0{constraints}");
        if let Some(&known) = self.assemblies.get(&key) {
            return Ok(known);
        }
        self.needs(Capability::AsmINTEL);
        self.extension("SPV_INTEL_inline_assembly");
        let result = match result {
            Some(ty) => self.ty(ty)?,
            None => self.out.type_void(),
        };
        let params: Vec<Word> = params.iter().map(|&ty| self.ty(ty)).collect::<Result<_>>()?;
        let ty = self.out.type_function(result, params);
        let known = self.assemblies.get(TARGET).copied();
        let target = known.unwrap_or_else(|| {
            let id = self.out.id();
            let name = vec![Operand::LiteralString(TARGET.to_string())];
            self.global(Instruction::new(Op::AsmTargetINTEL, None, Some(id), name));
            self.assemblies.insert(TARGET.to_string(), id);
            id
        });
        let id = self.out.id();
        let mut operands = vec![Operand::IdRef(ty), Operand::IdRef(target)];
        operands.extend([text, constraints].map(|s| Operand::LiteralString(s.to_string())));
        self.global(Instruction::new(Op::AsmINTEL, Some(result), Some(id), operands));
        if effects {
            self.out.decorate(id, Decoration::SideEffectsINTEL, []);
        }
        self.assemblies.insert(key, id);
        Ok(id)
    }

    fn global(&mut self, declaration: Instruction) {
        self.out.module_mut().types_global_values.push(declaration);
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.module_mut().functions = self.bodies;
        let words = self.out.module().assemble();
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}
