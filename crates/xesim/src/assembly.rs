//! Inline assembly in vISA (`SPV_INTEL_inline_assembly`): messages that bring blocks of two dimensions and such that arrive at a barrier, DPAS, and accesses by lanes that a mask has.
//!
//! What a message brings into registers as 64-bit words is a block as memory has it: nothing but a DPAS may take it, a part of the right form. Elements of other
//! types are those of the lanes: a column of 16, a row or a word of packed rows each.
//!
//! A message has eight words, each in the lane of its number: base (two), width, height and pitch, each less one, column, row, and the shape, which the text
//! says, too, in a comment: `// ROWSxCOLUMNSxBLOCKS`. Those of two messages may be two registers of one value of 64 bits a lane: two words of the first in
//! each of the lower eight lanes, two of the second in each of the upper ones.

use std::collections::HashMap;

use rspirv::dr::Instruction;

use crate::Error;
use crate::block::{Factor, Form, Shape};
use crate::module::{Type, id_of, unsupported};
use crate::translate::{Regs, Translator};

/// Opcodes of declarations, which stand outside of functions: the program that assembly is for, and a piece of it.
const TARGET: u32 = 5609;
const ASSEMBLY: u32 = 5610;
/// Those of what imports a set of instructions, and of an instruction of one.
const IMPORT: u32 = 11;
const EXTENDED: u32 = 12;
/// The set that describes the source.
const DESCRIPTION: &str = "OpenCL.DebugInfo.100";
/// Words in front of a module's first instruction.
const HEADER: usize = 5;

/// Registers that a message fills at most.
const REGISTERS: usize = 32;

/// A piece of assembly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Assembly {
    /// Loads a block, into so many registers; the words are a value, or this one of its registers.
    Load(Shape, Form, usize, Option<usize>),
    /// Stores one.
    Store(Shape, Option<usize>),
    /// Brings it into the caches.
    Prefetch(Shape, Option<usize>),
    /// Arrives at the barrier of the work group.
    Arrive,
    /// Words of two messages in one value.
    Pair,
    /// The same added to both.
    AddToPair,
    /// A product, and whether it is added to something.
    Dpas { factor: Factor, rows: usize, first: Part, second: Part, added: bool },
    /// Loads or stores so many words of so many bits of the lanes that a mask has.
    Masked { load: bool, bits: u32, count: usize },
    /// Compares and swaps elements of 16 bits.
    SwapHalf,
    /// What is not known here.
    Other(String),
}

/// An operand of a product: words of the whole, and the register at which the part begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    words: usize,
    at: usize,
}

/// A block as memory has it, by lanes.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    form: Form,
    registers: usize,
    values: Regs,
}

/// Takes the declarations of assembly out of a module: a grammar that knows them has a type where the extension has none. And what describes the source
/// to debuggers: lines say it, too.
///
/// # Errors
/// Instructions that do not fit into their lengths.
pub(crate) fn split(words: &[u32]) -> Result<(Vec<u32>, HashMap<u32, Assembly>), Error> {
    let mut rest = words.get(..HEADER).unwrap_or(words).to_vec();
    let mut found = HashMap::new();
    let mut description = None;
    let mut at = rest.len();
    while let Some(&first) = words.get(at) {
        let (length, opcode) = ((first >> 16) as usize, first & 0xffff);
        let instruction = words.get(at..at + length).filter(|i| !i.is_empty());
        let instruction = instruction.ok_or_else(|| Error::new("no SPIR-V: an instruction of no length"))?;
        match opcode {
            TARGET => {}
            ASSEMBLY => {
                let (Some(&id), Some(text)) = (instruction.get(2), instruction.get(5..)) else {
                    return Err(Error::new("no SPIR-V: assembly without a text"));
                };
                let (text, used) = string(text);
                let (constraints, _) = string(&instruction[5 + used..]);
                found.insert(id, read(&text, &constraints));
            }
            IMPORT if instruction.get(2..).is_some_and(|name| string(name).0 == DESCRIPTION) => {
                description = Some(instruction[1]);
            }
            // Of what set it is stands behind its type and itself.
            EXTENDED if description.is_some() && instruction.get(3).copied() == description => {}
            _ => rest.extend(instruction),
        }
        at += length;
    }
    Ok((rest, found))
}

/// A string, and its words.
fn string(words: &[u32]) -> (String, usize) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), (end / 4 + 1).min(words.len()))
}

fn read(text: &str, constraints: &str) -> Assembly {
    if text == "lsc_atomic_icas.ugm (M1, 16) $0:d16c32 flat[$1]:a64 $2 $3" && constraints == "=rw,rw,rw,rw" {
        return Assembly::SwapHalf;
    }
    if text == "raw_sends.3.1.0.0 (M1, 1) 0x0:ud 0x2000004:ud $0.0 V0.0 V0.0" && constraints == "rw" {
        return Assembly::Arrive;
    }
    let known = message(text, constraints)
        .or_else(|| dpas(text, constraints))
        .or_else(|| masked(text, constraints))
        .or_else(|| pair(text, constraints));
    known.unwrap_or_else(|| Assembly::Other(text.to_string()))
}

/// What makes a value of two messages' words, and what adds to it.
fn pair(text: &str, constraints: &str) -> Option<Assembly> {
    const BOTH: &str = "{\n.decl W v_type=G type=d num_elts=32 align=GRF alias=<$0, 0>\n";
    let rest = text.strip_prefix(BOTH)?.strip_suffix("\n}\n")?;
    let moves = "mov (M1_NM, 16) W(0,0)<1> $1(0,0)<1;1,0>\nmov (M1_NM, 16) W(1,0)<1> $2(0,0)<1;1,0>";
    match (rest, constraints) {
        (rest, "=rw,rw,rw") if rest == moves => Some(Assembly::Pair),
        ("add (M1_NM, 32) W(0,0)<1> W(0,0)<1;1,0> $1(0,0)<0;16,1>", "=rw,rw,0") => Some(Assembly::AddToPair),
        _ => None,
    }
}

/// A message, and the register of its operand of that number that has its words, where the text names one.
fn of_register(text: &str, operand: usize) -> (String, Option<usize>) {
    let named = || {
        let declared = format!("{{\n.decl W v_type=G type=ud num_elts=16 align=GRF alias=<${operand}, ");
        let (bytes, code) = text.strip_prefix(&declared)?.strip_suffix("\n}\n")?.split_once(">\n")?;
        let register = ["0", "64"].iter().position(|&at| at == bytes)?;
        Some((code.replace(" W.0 ", &format!(" ${operand}.0 ")), Some(register)))
    };
    named().unwrap_or_else(|| (text.to_string(), None))
}

fn message(text: &str, constraints: &str) -> Option<Assembly> {
    let (text, register) = of_register(text, usize::from(constraints.starts_with('=')));
    let (code, shape) = text.split_once(" // ")?;
    let (sent, rest) = code.strip_prefix("raw_sends.15.1.")?.split_once('.')?;
    let (registers, rest) = rest.split_once(" (M1, 1) 0x0:ud 0x")?;
    let sent: usize = sent.parse().ok()?;
    let (descriptor, operands) = rest.split_once(":ud ")?;
    let (registers, descriptor): (usize, _) =
        (registers.parse().ok()?, u32::from_str_radix(descriptor, 16).ok()?);
    let numbers: Option<Vec<u32>> = shape.split('x').map(|n| n.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| !numbers.contains(&0))?;
    let &[rows, columns, blocks] = numbers.as_slice() else { return None };
    let bits = 8 << (descriptor >> 9 & 7);
    let shape = Shape { bits, rows, columns, blocks };
    // One register of words, and what says how caches keep it.
    let what = descriptor & !(7 << 9 | 31 << 20 | 7 << 17);
    let form = match what {
        0x200_0003 | 0x200_0007 => Form::Rows,
        0x200_0083 => Form::Transform,
        0x200_8003 => Form::Transpose,
        _ => return None,
    };
    let fills = rows.checked_mul(columns)?.checked_mul(blocks)?.checked_mul(bits)? as usize / 512;
    let store = what == 0x200_0007;
    if store != (sent > 0) {
        return None;
    }
    match (operands, constraints) {
        ("$0.0 $1.0 V0.0", "rw,rw")
            if store
                && registers == 0
                && sent == fills
                && descriptor == what | (bits.trailing_zeros() - 3) << 9 =>
        {
            Some(Assembly::Store(shape, register))
        }
        ("$0.0 V0.0 V0.0", "rw") if registers == 0 && form == Form::Rows && descriptor >> 20 & 31 == 0 => {
            Some(Assembly::Prefetch(shape, register))
        }
        ("$1.0 V0.0 $0.0", "=rw,rw")
            if registers == fills && descriptor >> 20 & 31 == registers.min(31) as u32 =>
        {
            Some(Assembly::Load(shape, form, registers, register))
        }
        _ => None,
    }
}

fn masked(text: &str, constraints: &str) -> Option<Assembly> {
    let rest = text
        .strip_prefix("{\n.decl P v_type=P num_elts=16\ncmp.ne (M1, 16) P $2(0,0)<1;1,0> 0x0:d\n(P) lsc_")?;
    let rest = rest.strip_suffix("\n}\n")?;
    let (load, words) = match rest.strip_prefix("load.ugm (M1, 16) $0:") {
        Some(rest) => (true, rest.strip_suffix(" flat[$1]:a64")?),
        None => (false, rest.strip_prefix("store.ugm (M1, 16) flat[$0]:a64 $1:")?),
    };
    let (bits, count) = match words {
        "d8c32" => (8, 1),
        "d16c32" => (16, 1),
        "d32" => (32, 1),
        "d32x2" => (32, 2),
        "d32x4" => (32, 4),
        "d64" => (64, 1),
        _ => return None,
    };
    (constraints == if load { "=rw,rw,rw" } else { "rw,rw,rw" }).then_some(Assembly::Masked {
        load,
        bits,
        count,
    })
}

fn dpas(text: &str, constraints: &str) -> Option<Assembly> {
    let mut lines = text.lines();
    let (Some("{"), Some(first), Some(second), Some(code), Some("}"), None) =
        (lines.next(), lines.next(), lines.next(), lines.next(), lines.next(), lines.next())
    else {
        return None;
    };
    let words = |line: &str, name: &str, operand: &str| -> Option<usize> {
        let rest = line.strip_prefix(&format!(".decl {name} v_type=G type=ud num_elts="))?;
        rest.strip_suffix(&format!(" align=GRF alias=<{operand}, 0>"))?.parse().ok()
    };
    let (of_first, of_second) = (words(first, "A", "$1")?, words(second, "B", "$2")?);
    let (name, operands) = code.split_once(" (M1, 16) $0.0 ")?;
    let (sum, operands) = operands.split_once(" B.")?;
    let (bytes, at) = operands.strip_suffix(",0)")?.split_once(" A(")?;
    let added = match (sum, constraints) {
        ("$0.0", "=rw,rw,rw,0") => true,
        ("V0.0", "=rw,rw,rw") => false,
        _ => return None,
    };
    let bytes: usize = bytes.parse().ok()?;
    let (types, rows) = name.strip_prefix("dpas.")?.split_once(".8.")?;
    let factor = match types {
        "hf.hf" => Factor::F16,
        "bf.bf" => Factor::Bf16,
        _ => return None,
    };
    let (first, second) =
        (Part { words: of_first, at: at.parse().ok()? }, Part { words: of_second, at: bytes / 64 });
    let within = [first, second].iter().all(|part| part.at < part.words && part.words <= REGISTERS * 16);
    let rows = rows.parse().ok().filter(|rows| (1..=8).contains(rows))?;
    (bytes.is_multiple_of(64) && within).then_some(Assembly::Dpas { factor, rows, first, second, added })
}

impl Translator<'_> {
    /// `OpAsmCallINTEL`.
    pub(crate) fn assembly(&mut self, i: &Instruction) -> Result<(), Error> {
        let known = self.module.assemblies.get(&id_of(i, 0)?).cloned();
        match known {
            Some(Assembly::Load(shape, form, registers, register)) => {
                let place = self.words(i, shape, register)?;
                self.block_load(i, shape, form, registers, &place)
            }
            Some(Assembly::Store(shape, register)) => {
                let (place, rows) = (self.words(i, shape, register)?, self.value(id_of(i, 2)?)?);
                if rows.len() != (shape.rows * shape.blocks) as usize {
                    return Err(unsupported(i, "rows of this shape"));
                }
                self.transfer(i, "write_flat_", shape, Form::Rows, &place, rows).map(|_| ())
            }
            Some(Assembly::Pair) => self.pair(i),
            Some(Assembly::AddToPair) => self.add_to_pair(i),
            Some(Assembly::Prefetch(shape, register)) => {
                let place = self.words(i, shape, register)?;
                self.transfer(i, "read_prefetch_", shape, Form::Rows, &place, vec![]).map(|_| ())
            }
            Some(Assembly::Dpas { factor, rows, first, second, added }) => {
                let a = self.part(i, 1, first, Form::Rows, rows)?;
                let b = self.part(i, 2, second, Form::Transform, 8)?;
                let c = if added { self.value(id_of(i, 3)?)? } else { self.zeros(rows) };
                if c.len() != rows {
                    return Err(unsupported(i, "a product of this shape"));
                }
                let made = self.dpas(i, factor, &[a, b, c])?;
                self.set(i, made)
            }
            Some(Assembly::SwapHalf) => self.swap_half(i),
            Some(Assembly::Arrive) => self.barrier_message(i),
            Some(Assembly::Masked { load, bits, count }) => self.masked(i, load, bits, count),
            Some(Assembly::Other(text)) => Err(unsupported(i, &format!("the assembly `{text}`"))),
            None => Err(unsupported(i, "assembly that is not declared")),
        }
    }

    fn swap_half(&mut self, i: &Instruction) -> Result<(), Error> {
        let [address, expected, new] = [self.only(i, 1, 'd')?, self.only(i, 2, 'r')?, self.only(i, 3, 'r')?];
        let halves = [expected, new].map(|word| {
            let half = self.reg('h');
            self.op(format!("cvt.u16.u32 {half}, {word};"));
            half
        });
        let (seen, word) = (self.reg('h'), self.reg('r'));
        self.op(format!(
            "atom.relaxed.gpu.global.cas.b16 {seen}, [{address}], {}, {};",
            halves[0], halves[1]
        ));
        self.op(format!("cvt.u32.u16 {word}, {seen};"));
        self.set(i, vec![word])
    }

    /// The third word says how many sub-groups arrive, and how many there are, in a byte each.
    fn barrier_message(&mut self, i: &Instruction) -> Result<(), Error> {
        let own = self.only(i, 1, 'r')?;
        let word = self.shuffled(&Type::Int(32), "idx", &own, "2")?;
        let (said, bad) = (self.reg('r'), self.reg('p'));
        self.op(format!("mul.lo.u32 {said}, %subs, 0x1010000;"));
        self.op(format!("setp.ne.u32 {bad}, {word}, {said};"));
        self.trap(&bad, "the third word must say twice how many sub-groups the work group has");
        self.arrive(false);
        Ok(())
    }

    fn zeros(&mut self, count: usize) -> Regs {
        let zero = self.reg('r');
        self.op(format!("mov.b32 {zero}, 0;"));
        vec![zero; count]
    }

    fn masked(&mut self, i: &Instruction, load: bool, bits: u32, count: usize) -> Result<(), Error> {
        let (address, mask) = (self.scalar(i, 1)?, self.scalar(i, if load { 2 } else { 3 })?);
        let set = self.reg('p');
        self.op(format!("setp.ne.s32 {set}, {mask}, 0;"));
        let class = if bits == 64 { 'd' } else { 'r' };
        let words = if load {
            let words: Regs = (0..count).map(|_| self.reg(class)).collect();
            // What the others have is not to be looked at.
            words.iter().for_each(|word| self.op(format!("mov.b{} {word}, 0x7fbadbad;", bits.max(32))));
            words
        } else {
            self.value(id_of(i, 2)?)?
        };
        if words.len() != count || !words.iter().all(|word| word[1..].starts_with(class)) {
            return Err(unsupported(i, "these words"));
        }
        let (vector, list) = match count {
            1 => (String::new(), words[0].clone()),
            n => (format!(".v{n}"), format!("{{{}}}", words.join(", "))),
        };
        let ty = if bits < 32 { 'u' } else { 'b' };
        if load {
            self.op(format!("@{set} ld.global{vector}.{ty}{bits} {list}, [{address}];"));
            return self.set(i, words);
        }
        self.op(format!("@{set} st.global{vector}.{ty}{bits} [{address}], {list};"));
        Ok(())
    }

    fn block_load(
        &mut self,
        i: &Instruction,
        shape: Shape,
        form: Form,
        registers: usize,
        place: &[String; 6],
    ) -> Result<(), Error> {
        let values = self.transfer(i, "read_flat_", shape, form, place, vec![])?;
        let ty = i.result_type.ok_or_else(|| unsupported(i, "a message to nowhere"))?;
        let (element, count) = self.module.elements(ty)?;
        match element {
            // A register has eight words of 64 bits, and 16 lanes have one each.
            Type::Int(64) if count * 2 == registers => {
                let id = i.result_id.ok_or_else(|| unsupported(i, "a message to nowhere"))?;
                self.keep_whole(id, Whole { form, registers, values });
                Ok(())
            }
            Type::Int(bits) if count == values.len() && count * bits as usize / 32 == registers => {
                self.set(i, values)
            }
            _ => Err(unsupported(i, "a block of this type")),
        }
    }

    /// The only register that an operand has, which is of this class.
    fn only(&mut self, i: &Instruction, operand: usize, class: char) -> Result<String, Error> {
        let [own] = self.value(id_of(i, operand)?)?.try_into().map_err(|_| unsupported(i, "these words"))?;
        let of_class = |own: &String| own.trim_start_matches('%').starts_with(class);
        Some(own).filter(of_class).ok_or_else(|| unsupported(i, "words of this type"))
    }

    /// The words that a lane has of a register of 16: those of two lanes, again from the first for the upper half.
    fn two_words(&mut self, own: &str) -> Result<[String; 2], Error> {
        let [lane, twice, next] = [(); 3].map(|()| self.reg('r'));
        self.op(format!("mov.u32 {lane}, %laneid;"));
        self.op(format!("shl.b32 {twice}, {lane}, 1;"));
        self.op(format!("and.b32 {twice}, {twice}, 15;"));
        self.op(format!("add.s32 {next}, {twice}, 1;"));
        let low = self.shuffled(&Type::Int(32), "idx", own, &twice)?;
        Ok([low, self.shuffled(&Type::Int(32), "idx", own, &next)?])
    }

    fn pair(&mut self, i: &Instruction) -> Result<(), Error> {
        let (lane, upper) = (self.reg('r'), self.reg('p'));
        self.op(format!("mov.u32 {lane}, %laneid;"));
        self.op(format!("setp.gt.u32 {upper}, {lane}, 7;"));
        let mut halves = vec![];
        for operand in [1, 2] {
            let own = self.only(i, operand, 'r')?;
            halves.push(self.two_words(&own)?);
        }
        let words = [0, 1].map(|k| {
            let word = self.reg('r');
            self.op(format!("selp.b32 {word}, {}, {}, {upper};", halves[1][k], halves[0][k]));
            word
        });
        self.set_pair(i, &words)
    }

    fn add_to_pair(&mut self, i: &Instruction) -> Result<(), Error> {
        let (step, pair) = (self.only(i, 1, 'r')?, self.only(i, 2, 'd')?);
        let step = self.two_words(&step)?;
        let words = [(); 2].map(|()| self.reg('r'));
        self.op(format!("mov.b64 {{{}, {}}}, {pair};", words[0], words[1]));
        for (word, by) in words.iter().zip(&step) {
            self.op(format!("add.s32 {word}, {word}, {by};"));
        }
        self.set_pair(i, &words)
    }

    fn set_pair(&mut self, i: &Instruction, words: &[String; 2]) -> Result<(), Error> {
        let pair = self.reg('d');
        self.op(format!("mov.b64 {pair}, {{{}, {}}};", words[0], words[1]));
        self.set(i, vec![pair])
    }

    /// The words of a message: base, width, height, pitch, column and row.
    fn words(
        &mut self,
        i: &Instruction,
        shape: Shape,
        register: Option<usize>,
    ) -> Result<[String; 6], Error> {
        let mut words = vec![];
        if let Some(register) = register {
            let own = self.only(i, 1, 'd')?;
            for lane in 0..4 {
                let lane = (8 * register + lane).to_string();
                let both = self.shuffled(&Type::Int(64), "idx", &own, &lane)?;
                let [low, high] = [(); 2].map(|()| self.reg('r'));
                self.op(format!("mov.b64 {{{low}, {high}}}, {both};"));
                words.extend([low, high]);
            }
        } else {
            let own = self.only(i, 1, 'r')?;
            for lane in 0..8 {
                words.push(self.shuffled(&Type::Int(32), "idx", &own, &lane.to_string())?);
            }
        }
        let bad = self.reg('p');
        let said = (shape.columns - 1) | (shape.rows - 1) << 8 | (shape.blocks - 1) << 16;
        self.op(format!("setp.ne.u32 {bad}, {}, {said};", words[7]));
        self.trap(&bad, "the last word of a message must be the shape that its text says");
        let base = self.reg('d');
        self.op(format!("mov.b64 {base}, {{{}, {}}};", words[0], words[1]));
        let [_, _, width, height, pitch, x, y, _] =
            <[String; 8]>::try_from(words).map_err(|_| unsupported(i, "these words"))?;
        Ok([base, width, height, pitch, x, y])
    }

    /// An operand of a product: as many values as it takes, of a whole block or all of a vector.
    fn part(
        &mut self,
        i: &Instruction,
        k: usize,
        part: Part,
        form: Form,
        values: usize,
    ) -> Result<Regs, Error> {
        let id = id_of(i, k)?;
        let Some(whole) = self.whole(id) else {
            let regs = self.value(id)?;
            let words = regs.len() * if form == Form::Rows { 8 } else { 16 };
            let all = regs.len() == values && (part.words, part.at) == (words, 0);
            return if all { Ok(regs) } else { Err(unsupported(i, "a part of such an operand")) };
        };
        // Rows are two a register; words of packed rows, and of columns, one.
        let first = part.at * if form == Form::Rows { 2 } else { 1 };
        let fits = (whole.form == Form::Rows) == (form == Form::Rows) && part.words == whole.registers * 16;
        let taken = whole.values.get(first..first.saturating_add(values)).filter(|_| fits);
        taken.map(<[String]>::to_vec).ok_or_else(|| unsupported(i, "a part of such a block"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "raw_sends.15.1.0.32 (M1, 1) 0x0:ud 0x3f00283:ud $1.0 V0.0 $0.0 // 32x16x2";
        let shape = Shape { bits: 16, rows: 32, columns: 16, blocks: 2 };
        assert_eq!(read(text, "=rw,rw"), Assembly::Load(shape, Form::Transform, 32, None));
        let of_register = |bytes| {
            let words = format!("{{\n.decl W v_type=G type=ud num_elts=16 align=GRF alias=<$1, {bytes}>\n");
            format!("{words}{}\n}}\n", text.replace("$1.0", "W.0"))
        };
        assert_eq!(read(&of_register(64), "=rw,rw"), Assembly::Load(shape, Form::Transform, 32, Some(1)));
        assert_eq!(read(&of_register(32), "=rw,rw"), Assembly::Other(of_register(32)));
        // Another number of registers than the shape has, other operands, another unit.
        for wrong in
            [text.replace("0.32", "0.16"), text.replace("$1.0", "$2.0"), text.replace(".15.", ".14.")]
        {
            assert_eq!(read(&wrong, "=rw,rw"), Assembly::Other(wrong));
        }
        let text = "{\n.decl A v_type=G type=ud num_elts=512 align=GRF alias=<$1, 0>\n\
                    .decl B v_type=G type=ud num_elts=128 align=GRF alias=<$2, 0>\n\
                    dpas.bf.bf.8.8 (M1, 16) $0.0 $0.0 B.0 A(20,0)\n}\n";
        let (first, second) = (Part { words: 512, at: 20 }, Part { words: 128, at: 0 });
        let want = |added| Assembly::Dpas { factor: Factor::Bf16, rows: 8, first, second, added };
        assert_eq!(read(text, "=rw,rw,rw,0"), want(true));
        assert_eq!(read(text, "=rw,rw,rw"), Assembly::Other(text.to_string()));
        assert_eq!(read(&text.replace("$0.0 $0.0", "$0.0 V0.0"), "=rw,rw,rw"), want(false));
    }
}
