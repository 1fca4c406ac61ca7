//! What a listing of native code holds: instructions by name, of the whole and of each loop.
//!
//! `ocloc disasm` writes an instruction a line: a predicate in parentheses, its name, execution size, operands; the message of a `send` stands in a
//! comment behind it. A label is a line of its own, and a loop what lies between a label and a jump back to it.

use std::collections::{BTreeMap, HashMap};

/// How often each instruction stands there, by its name; a `send` has that of its message.
pub type Mix = BTreeMap<String, usize>;

/// A place in the kernel's source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// The code from a label to the last jump back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The label.
    pub label: String,
    /// Loops that it is in.
    pub depth: usize,
    /// Its instructions, without those of loops in it.
    pub instructions: Mix,
    /// The same by lines.
    pub by_line: BTreeMap<Option<Place>, Mix>,
}

/// A kernel's code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// All instructions.
    pub instructions: Mix,
    /// Loops, in the order of their beginnings.
    pub loops: Vec<Loop>,
}

/// An instruction's name and what it may jump to.
fn instruction(line: &str) -> Option<(String, Vec<&str>)> {
    let (code, comment) = line.split_once("//").map_or((line, ""), |(code, comment)| (code, comment));
    let mut code = code.trim();
    if let Some(rest) = code.strip_prefix('(') {
        code = rest.split_once(')')?.1.trim_start();
    }
    let mut words = code.split_whitespace();
    // What fills the end of the code is none.
    let name = words.next().filter(|&name| name != "illegal")?;
    if name.starts_with("send")
        && let Some(message) = comment.rsplit(';').next().and_then(|text| text.split_whitespace().next())
    {
        return Some((message.to_string(), Vec::new()));
    }
    let labels = words.filter(|word| is_label(word)).collect();
    Some((name.to_string(), labels))
}

pub(crate) fn is_label(word: &str) -> bool {
    word.strip_prefix('L').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

impl Listing {
    /// Reads a listing. `lines` has the line that each instruction is of, or is of other code.
    pub fn read(text: &str, lines: &[Option<Place>]) -> Listing {
        let mut names = Vec::new();
        let mut labels = HashMap::new();
        let mut jumps = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            if let Some(label) = line.strip_suffix(':').filter(|label| is_label(label)) {
                labels.insert(label, names.len());
            } else if let Some((name, to)) = instruction(line) {
                jumps.extend(to.into_iter().map(|label| (names.len(), label)));
                names.push(name);
            }
        }
        let place = |at: usize| lines.get(at).filter(|_| lines.len() == names.len()).cloned().flatten();
        let mut ranges: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
        for (from, label) in jumps {
            if let Some(&to) = labels.get(label).filter(|&&to| to <= from) {
                let range = ranges.entry(to).or_insert((from, label));
                range.0 = range.0.max(from);
            }
        }
        let count = |of: &mut dyn Iterator<Item = usize>| {
            let mut mix = Mix::new();
            of.for_each(|at| *mix.entry(names[at].clone()).or_default() += 1);
            mix
        };
        let within = |at: usize, (&from, &(to, _)): (&usize, &(usize, &str))| from <= at && at <= to;
        let loops = ranges.iter().map(|(&from, &(to, label))| {
            let inner = |at: usize| ranges.range(from + 1..).any(|range| *range.0 <= to && within(at, range));
            let own = || (from..=to).filter(|&at| !inner(at));
            let mut by_line: BTreeMap<_, Mix> = BTreeMap::new();
            for at in own() {
                *by_line.entry(place(at)).or_default().entry(names[at].clone()).or_default() += 1;
            }
            Loop {
                label: label.to_string(),
                depth: ranges.range(..from).filter(|range| within(from, *range)).count(),
                instructions: count(&mut own()),
                by_line,
            }
        });
        Listing { loops: loops.collect(), instructions: count(&mut (0..names.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_loops_are_found() {
        let text = "L0:
(W)     and (1|M0)               r127.0<1>:ud  r0.0<0;1,0>:ud    0xFFFFFFC0:ud
L40:
        send.ugm (16|M0)         r13      r17     null:0  0x0   0x02800203  {A@2,$3} // wr:1+0, rd:8; load_block2d.ugm.d16.a64
L48:
        dpas.8x8 (16|M0)         r3:f          r3:f              r18:hf            r13.0:hf         {Compacted,$2}
(W&f0.1) jmpi                                L48
(W&f0.1) jmpi                                L40
";
        let listing = Listing::read(text, &[]);
        let mix =
            |names: &[(&str, usize)]| names.iter().map(|&(name, n)| (name.to_string(), n)).collect::<Mix>();
        assert_eq!(
            listing.instructions,
            mix(&[("and", 1), ("load_block2d.ugm.d16.a64", 1), ("dpas.8x8", 1), ("jmpi", 2)])
        );
        let [outer, inner] = &listing.loops[..] else { panic!("{:?}", listing.loops) };
        assert_eq!((outer.label.as_str(), outer.depth), ("L40", 0));
        assert_eq!(outer.instructions, mix(&[("load_block2d.ugm.d16.a64", 1), ("jmpi", 1)]));
        assert_eq!((inner.label.as_str(), inner.depth), ("L48", 1));
        assert_eq!(inner.instructions, mix(&[("dpas.8x8", 1), ("jmpi", 1)]));
    }
}
