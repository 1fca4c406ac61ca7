//! Places in the source as the offline compiler carries them into native code (`OpenCL.DebugInfo.100`): of `OpLine` alone nothing is left there.
//!
//! A kernel is one function of this description, and each file that its lines are of a block in it, since a line is in the file of what it is in. Code is in one of
//! them from where it says so to the end of its block.

use std::collections::HashMap;

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Op, Word};

use super::Emitter;

/// What the description calls its parts (OpenCL.DebugInfo.100, "Instructions").
const COMPILATION_UNIT: u32 = 1;
const TYPE_FUNCTION: u32 = 8;
const FUNCTION: u32 = 20;
const LEXICAL_BLOCK: u32 = 21;
const SCOPE: u32 = 23;
const SOURCE: u32 = 35;

/// Its version, and that of DWARF that it follows.
const VERSIONS: [u32; 2] = [1 << 16, 4];
/// OpenCL C: a language that compilers know.
const LANGUAGE: u32 = 3;
/// A definition that others see.
const FLAGS: u32 = 1 << 3 | 3;

/// What is described of a module.
#[derive(Default)]
pub(super) struct Description {
    import: Option<Word>,
    /// The kernel, and the blocks in it, by their files.
    kernel: Option<Word>,
    blocks: HashMap<Word, Word>,
}

impl Emitter<'_> {
    /// The instruction that says that code is in a kernel's lines of a file, which this one is the first of.
    pub(super) fn scope(&mut self, kernel: &str, id: Word, file: Word, line: u32) -> Instruction {
        let function = self.described(kernel, id, file, line);
        let block = match self.description.blocks.get(&file) {
            Some(&known) => known,
            None => {
                let source = self.describe(SOURCE, vec![Operand::IdRef(file)]);
                let place = [line, 1].map(Operand::LiteralBit32);
                let mut operands = vec![Operand::IdRef(source)];
                operands.extend(place);
                operands.push(Operand::IdRef(function));
                let made = self.describe(LEXICAL_BLOCK, operands);
                self.description.blocks.insert(file, made);
                made
            }
        };
        self.description_of(SCOPE, vec![Operand::IdRef(block)])
    }

    /// The kernel's description.
    fn described(&mut self, kernel: &str, id: Word, file: Word, line: u32) -> Word {
        if let Some(known) = self.description.kernel {
            return known;
        }
        let ids = |ids: &[Word]| ids.iter().map(|&id| Operand::IdRef(id)).collect::<Vec<_>>();
        let numbers = |numbers: &[u32]| numbers.iter().map(|&n| Operand::LiteralBit32(n)).collect::<Vec<_>>();
        let void = self.out.type_void();
        let [name, none] = [kernel, ""].map(|text| self.out.string(text));
        let source = self.describe(SOURCE, ids(&[file]));
        let unit = [numbers(&VERSIONS), ids(&[source]), numbers(&[LANGUAGE])].concat();
        let unit = self.describe(COMPILATION_UNIT, unit);
        let ty = self.describe(TYPE_FUNCTION, [numbers(&[FLAGS]), ids(&[void])].concat());
        let function = [
            ids(&[name, ty, source]),
            numbers(&[line, 1]),
            ids(&[unit, none]),
            numbers(&[FLAGS, line]),
            ids(&[id]),
        ];
        let function = self.describe(FUNCTION, function.concat());
        *self.description.kernel.insert(function)
    }

    /// A part of the description, for all of the module.
    fn describe(&mut self, part: u32, operands: Vec<Operand>) -> Word {
        let made = self.description_of(part, operands);
        let id = made.result_id.unwrap_or_default();
        self.global(made);
        id
    }

    fn description_of(&mut self, part: u32, operands: Vec<Operand>) -> Instruction {
        let import = match self.description.import {
            Some(known) => known,
            None => *self.description.import.insert(self.out.ext_inst_import("OpenCL.DebugInfo.100")),
        };
        let void = self.out.type_void();
        let mut all = vec![Operand::IdRef(import), Operand::LiteralExtInstInteger(part)];
        all.extend(operands);
        Instruction::new(Op::ExtInst, Some(void), Some(self.out.id()), all)
    }
}
