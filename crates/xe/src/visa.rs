//! Instructions as text of vISA, the assembly of Intel's compiler, which SPIR-V carries inline (`SPV_INTEL_inline_assembly`).
//!
//! The compiler's own functions for blocks write the eight words that say where a block is anew for each message. Here they are a value of the program: a word
//! a lane, of which a loop changes the one that moves. And what a message brings stays in the registers where it was put: a DPAS names a part of it.
//!
//! `raw_sends.UNIT.WORDS.SENT.BROUGHT (M1, 1) 0 DESCRIPTOR words data result` is a message to a unit (15: memory) with so many registers of words and of data, which brings
//! so many. Its shape stands in a word, and, for who reads the text, in a comment. `dpas.A.B.8.ROWS (M1, 16) result sum second first` counts the place
//! of the second operand in bytes, that of the first in registers. Registers have 64 bytes; `V0` is none.

use tilewright_llvm::{Scalar, Ty};

/// How a block lies in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A row behind the other.
    Rows,
    /// The rows that share a word of 32 bits, beside each other in it (VNNI).
    Packed,
    /// Words of 32 bits, by columns.
    Turned,
}

/// A message that brings a block, or several beside each other, or stores one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Bits of an element.
    pub bits: u32,
    /// Rows.
    pub rows: u32,
    /// Columns of a block.
    pub columns: u32,
    /// Blocks beside each other.
    pub blocks: u32,
    /// How they lie in registers.
    pub form: Form,
}

/// Opcodes of the messages that load and store a block.
const LOAD: u32 = 3;
const STORE: u32 = 7;
/// That both caches keep it.
const CACHED: u32 = 4 << 17;

impl Message {
    /// Registers that it fills.
    pub fn registers(&self) -> u32 {
        self.rows * self.columns * self.blocks * self.bits / 512
    }

    /// The last of the eight words: the shape.
    pub fn word(&self) -> u32 {
        (self.columns - 1) | (self.rows - 1) << 8 | (self.blocks - 1) << 16
    }

    /// What the result is held as where only instructions of this kind take it.
    pub fn whole(&self) -> Ty {
        Ty::vector(Scalar::I64, (self.registers() / 2) as u8)
    }

    fn descriptor(&self, opcode: u32) -> u32 {
        let form = match self.form {
            Form::Rows => 0,
            Form::Packed => 0x80,
            Form::Turned => 0x8000,
        };
        // One register of words, of 64-bit addresses; elements of 8, 16, 32 bits are 0, 1, 2.
        1 << 25 | (self.bits.trailing_zeros() - 3) << 9 | form | opcode
    }

    fn comment(&self) -> String {
        format!("// {}x{}x{}", self.rows, self.columns, self.blocks)
    }

    /// Loads it: the result, then the words, or what has them in one of its registers.
    pub fn load(&self, of: Option<u32>) -> String {
        let registers = self.registers();
        // There are five bits for the number, of which the last says 32, too.
        let descriptor = self.descriptor(LOAD) | registers.min(31) << 20;
        of_register(of, 1, |words| {
            format!(
                "raw_sends.15.1.0.{registers} (M1, 1) 0x0:ud {descriptor:#x}:ud {words} V0.0 $0.0 {}",
                self.comment()
            )
        })
    }

    /// Stores it: the words, or what has them in one of its registers, and the rows.
    pub fn store(&self, of: Option<u32>) -> String {
        let (registers, descriptor) = (self.registers(), self.descriptor(STORE));
        of_register(of, 0, |words| {
            format!(
                "raw_sends.15.1.{registers}.0 (M1, 1) 0x0:ud {descriptor:#x}:ud {words} $1.0 V0.0 {}",
                self.comment()
            )
        })
    }

    /// Brings it into the caches: the words, or what has them in one of its registers.
    pub fn prefetch(&self, of: Option<u32>) -> String {
        let descriptor = self.descriptor(LOAD) | CACHED;
        of_register(of, 0, |words| {
            format!(
                "raw_sends.15.1.0.0 (M1, 1) 0x0:ud {descriptor:#x}:ud {words} V0.0 V0.0 {}",
                self.comment()
            )
        })
    }
}

/// An instruction that takes an operand, or one of the registers that this has.
fn of_register(of: Option<u32>, operand: u32, instruction: impl Fn(&str) -> String) -> String {
    let Some(register) = of else { return instruction(&format!("${operand}.0")) };
    format!(
        "{{\n.decl W v_type=G type=ud num_elts=16 align=GRF alias=<${operand}, {}>\n{}\n}}\n",
        64 * register,
        instruction("W.0")
    )
}

/// The words of two messages beside each other: both, the first, the second.
pub const PAIR: &str = "{\n.decl W v_type=G type=d num_elts=32 align=GRF alias=<$0, 0>\n\
    mov (M1_NM, 16) W(0,0)<1> $1(0,0)<1;1,0>\nmov (M1_NM, 16) W(1,0)<1> $2(0,0)<1;1,0>\n}\n";

/// The same added to both, in their place: the result, the words that are added, both.
pub const ADD_TO_PAIR: &str = "{\n.decl W v_type=G type=d num_elts=32 align=GRF alias=<$0, 0>\n\
    add (M1_NM, 32) W(0,0)<1> W(0,0)<1;1,0> $1(0,0)<0;16,1>\n}\n";

/// Tells the unit of barriers (3) that the warp has arrived at that of its work group: the words, of which one counts.
pub const ARRIVE: &str = "raw_sends.3.1.0.0 (M1, 1) 0x0:ud 0x2000004:ud $0.0 V0.0 V0.0";
/// The lane that has that one.
pub const ARRIVALS: i64 = 2;

/// The word: how many warps the barrier waits for, and how many of them arrive.
pub fn arrivals(num_warps: u32) -> u32 {
    num_warps << 24 | num_warps << 16
}

/// An operand of a DPAS: a part of what a message brought.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Words of 32 bits of the whole.
    pub words: u32,
    /// The first register.
    pub at: u32,
}

/// A product of so many rows: the result, the first operand, the second, and what it is added to, which is in the result's place, if it is added.
pub fn dpas(element: &str, rows: u32, first: Part, second: Part, added: bool) -> String {
    let name = |name: &str, part: Part, operand: u32| {
        format!(".decl {name} v_type=G type=ud num_elts={} align=GRF alias=<${operand}, 0>\n", part.words)
    };
    format!(
        "{{\n{}{}dpas.{element}.{element}.8.{rows} (M1, 16) $0.0 {} B.{} A({},0)\n}}\n",
        name("A", first, 1),
        name("B", second, 2),
        if added { "$0.0" } else { "V0.0" },
        second.at * 64,
        first.at
    )
}

/// How a message calls so many words of so many bits that a lane has beside each other, if it takes them: fewer than 32 bits come in as many.
fn words_of_lane(bits: u32, count: u32) -> Option<String> {
    Some(match (bits, count) {
        (8 | 16, 1) => format!("d{bits}c32"),
        (32 | 64, 1) => format!("d{bits}"),
        (32, 2 | 4) => format!("d32x{count}"),
        _ => return None,
    })
}

/// An instruction of the lanes whose operand of that number is not zero.
fn where_set(mask: u32, instruction: &str) -> String {
    format!(
        "{{\n.decl P v_type=P num_elts=16\ncmp.ne (M1, 16) P ${mask}(0,0)<1;1,0> 0x0:d\n(P) {instruction}\n}}\n"
    )
}

/// Loads words of the lanes that a mask has: the words, which are nothing elsewhere, the address, the mask.
pub fn masked_load(bits: u32, count: u32) -> Option<String> {
    let words = words_of_lane(bits, count)?;
    Some(where_set(2, &format!("lsc_load.ugm (M1, 16) $0:{words} flat[$1]:a64")))
}

/// Stores them: the address, the words, the mask.
pub fn masked_store(bits: u32, count: u32) -> Option<String> {
    let words = words_of_lane(bits, count)?;
    Some(where_set(2, &format!("lsc_store.ugm (M1, 16) flat[$0]:a64 $1:{words}")))
}

/// Compares elements of 16 bits with others and swaps them where they are the same: what was there, the address, what is compared with, what becomes of it.
/// SPIR-V has no such operation, and one on the word around would touch the element beside.
pub const SWAP_HALF: &str = "lsc_atomic_icas.ugm (M1, 16) $0:d16c32 flat[$1]:a64 $2 $3";

#[cfg(test)]
mod tests {
    use super::*;

    /// As the compiler writes them for its own functions.
    #[test]
    fn descriptors_of_messages() {
        let rows = Message { bits: 16, rows: 8, columns: 16, blocks: 1, form: Form::Rows };
        assert_eq!((rows.registers(), rows.word()), (4, 0x70f));
        assert!(rows.load(None).contains(" 0x2400203:ud "), "{}", rows.load(None));
        assert!(
            rows.store(None).starts_with("raw_sends.15.1.4.0 (M1, 1) 0x0:ud 0x2000207:ud $0.0 $1.0 V0.0")
        );
        let whole = Message { rows: 32, blocks: 2, ..rows };
        assert_eq!((whole.registers(), whole.word()), (32, 0x1_1f0f));
        assert!(
            whole.load(None).contains("raw_sends.15.1.0.32 (M1, 1) 0x0:ud 0x3f00203:ud"),
            "{}",
            whole.load(None)
        );
    }
}
