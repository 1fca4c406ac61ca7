//! The text of a disassembler as instructions.

use std::collections::HashMap;

use super::Mix;

/// A place in the kernel's source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// What the assembler wrote beside an instruction: when the next one may issue, and which of the six scoreboards it sets
/// and waits for (Jia, Maggioni, Staiger, Scarpazza: "Dissecting the NVIDIA Volta GPU Architecture via
/// Microbenchmarking", chapter 2; later architectures kept the fields).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Cycles until the next instruction of the warp.
    pub stall: u8,
    /// The scoreboard that is free when the results are there.
    pub sets: Option<u8>,
    /// The scoreboard that is free when the operands have been read.
    pub reads: Option<u8>,
    /// The scoreboards that must be free before it issues, a bit each.
    pub waits: u8,
}

impl Control {
    /// The fields lie in bits 105 to 121 of the 128 of an instruction.
    fn decode(high: u64) -> Control {
        let scoreboard = |at: u32| Some(((high >> at) & 7) as u8).filter(|&b| b < 6);
        Control {
            stall: ((high >> 41) & 15) as u8,
            sets: scoreboard(46),
            reads: scoreboard(49),
            waits: ((high >> 52) & 63) as u8,
        }
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the start of the function.
    pub address: u64,
    /// Whether a guard that never holds (`@!PT`) stands before it.
    pub never: bool,
    /// The opcode with its modifiers: `LDG.E.128`.
    pub opcode: String,
    /// What follows the opcode.
    pub operands: String,
    /// Where it comes from, if the code has source lines.
    pub place: Option<Place>,
    /// Absent where the disassembler did not print encodings.
    pub control: Option<Control>,
    /// Index of the instruction that it may branch to.
    pub target: Option<usize>,
}

impl Instruction {
    /// The opcode without modifiers.
    pub fn name(&self) -> &str {
        self.opcode.split('.').next().unwrap_or(&self.opcode)
    }

    /// Whether the opcode has this modifier.
    pub fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|m| m == modifier)
    }

    /// Bits that one thread moves, from the modifiers; 32 where none says otherwise.
    pub fn access_bits(&self) -> u32 {
        let widths = [("128", 128), ("64", 64), ("U16", 16), ("S16", 16), ("16", 16), ("U8", 8), ("S8", 8)];
        widths.into_iter().find(|(name, _)| self.has(name)).map_or(32, |(_, bits)| bits)
    }
}

/// The instructions of a function in the order of their addresses.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

impl Listing {
    /// Reads what `nvdisasm -c -g -hex` or `cuobjdump -sass` prints for one kernel.
    pub fn parse(text: &str) -> Listing {
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut labels = HashMap::new();
        let mut branches = Vec::new();
        let mut place = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_string(), instructions.len());
            } else if let Some(rest) = line.strip_prefix("//## File \"") {
                place = rest.split_once("\", line ").and_then(|(file, rest)| {
                    let line = rest.split_whitespace().next()?.parse().ok()?;
                    Some(Place { file: file.to_string(), line })
                });
            } else if let Some((address, code, encoding)) = parts(line) {
                match code {
                    Some(code) => {
                        let (instruction, label) = instruction(address, code, place.clone());
                        if let Some(label) = label {
                            branches.push((instructions.len(), label));
                        }
                        instructions.push(instruction);
                    }
                    // The second half of the encoding stands alone on the next line.
                    None => {
                        if let (Some(last), Some(high)) = (instructions.last_mut(), encoding) {
                            last.control.get_or_insert(Control::decode(high));
                        }
                    }
                }
            }
        }
        let by_address: HashMap<u64, usize> =
            instructions.iter().enumerate().map(|(i, x)| (x.address, i)).collect();
        for (at, label) in branches {
            let address = || u64::from_str_radix(label.strip_prefix("0x")?, 16).ok();
            let target = labels.get(&label).copied().or_else(|| by_address.get(&address()?).copied());
            instructions[at].target = target.filter(|&t| t < instructions.len());
        }
        Listing { instructions }
    }

    /// How often each opcode stands in the code.
    pub fn mix(&self) -> Mix {
        mix(&self.instructions)
    }
}

/// How often each opcode stands among the instructions, without its modifiers.
pub fn mix<'a>(instructions: impl IntoIterator<Item = &'a Instruction>) -> Mix {
    let mut mix = Mix::new();
    for instruction in instructions {
        *mix.entry(instruction.name().to_string()).or_insert(0) += 1;
    }
    mix
}

/// A line's address, its instruction and its encoding: `/*0010*/ @P0 LDG.E R4, [R2.64] ; /* 0x0000 */`, of which the
/// second half of the encoding has neither address nor instruction.
fn parts(line: &str) -> Option<(u64, Option<&str>, Option<u64>)> {
    let (comment, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let hex = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
    if let Some(encoding) = hex(comment) {
        return Some((0, None, Some(encoding)));
    }
    let address = u64::from_str_radix(comment, 16).ok()?;
    let (code, _) = rest.split_once(';')?;
    Some((address, Some(code.trim().trim_start_matches('{').trim()), None))
}

/// The instruction, and the label or address that it names as a branch.
fn instruction(address: u64, code: &str, place: Option<Place>) -> (Instruction, Option<String>) {
    let (guard, code) = match code.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        None => ("", code),
    };
    let (opcode, operands) = code.trim().split_once(char::is_whitespace).unwrap_or((code.trim(), ""));
    let operands = operands.trim().to_string();
    let branch = opcode == "BRA" || opcode.starts_with("BRA.");
    let label = branch.then(|| {
        let last = operands.rsplit(',').next().unwrap_or("").trim();
        last.trim_start_matches("`(").trim_end_matches(')').to_string()
    });
    let instruction = Instruction {
        address,
        never: guard == "!PT",
        opcode: opcode.to_string(),
        operands,
        place,
        control: None,
        target: None,
    };
    (instruction, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = concat!(
        "\t//## File \"k.py\", line 7\n",
        "        /*0000*/                   MOV R1, c[0x0][0x28] ;   /* 0x00000a0000017a02 */\n",
        "                                                            /* 0x000fc40000000f00 */\n",
        ".L_x_0:\n",
        "\t//## File \"k.py\", line 8\n",
        "        /*0010*/              @!P0 LDG.E.128 R4, desc[UR14][R2.64] ;  /* 0x0000000402048981 */\n",
        "                                                            /* 0x002ea8000c1e1d00 */\n",
        "        /*0020*/              @!PT LDS RZ, [RZ] ;\n",
        "        /*0030*/               @P1 BRA `(.L_x_0) ;\n",
        "        /*0040*/                   EXIT ;\n",
    );

    #[test]
    fn reads_places_controls_and_branches() {
        let listing = Listing::parse(TEXT);
        let names: Vec<&str> = listing.instructions.iter().map(Instruction::name).collect();
        assert_eq!(names, ["MOV", "LDG", "LDS", "BRA", "EXIT"]);
        let load = &listing.instructions[1];
        assert_eq!(load.place, Some(Place { file: "k.py".into(), line: 8 }));
        assert_eq!(load.access_bits(), 128);
        assert_eq!(load.control, Some(Control { stall: 4, sets: Some(2), reads: None, waits: 2 }));
        assert_eq!(listing.instructions[0].control.map(|c| (c.stall, c.waits)), Some((2, 0)));
        assert!(listing.instructions[2].never && !load.never);
        assert_eq!(listing.instructions[3].target, Some(1));
        assert_eq!(listing.mix().get("LDG"), Some(&1));
    }

    /// `cuobjdump` has addresses in place of labels, and prints the encoding after the instruction.
    #[test]
    fn reads_addresses_as_branch_targets() {
        let text = "\t/*0000*/  MOV R1, c[0x0][0x28] ;  /* 0x00000a0000017a02 */\n\
                    \t\t\t\t/* 0x000fc40000000f00 */\n\t/*0010*/  @!P0 BRA 0x0 ;  /* 0x0 */";
        assert_eq!(Listing::parse(text).instructions[1].target, Some(0));
    }
}
