//! The loops of a listing.
//!
//! The assembler lays a loop out in one piece, its branch back at the end: what lies between a branch backwards and its
//! target is a loop, and loops with the same start are one. Code moved out of that piece (cold paths) is not counted.

use super::listing::{Instruction, Listing};

/// A loop, as instruction numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The first instruction.
    pub first: usize,
    /// The branch back.
    pub last: usize,
    /// How many loops are around it.
    pub depth: usize,
    /// Whether no other loop is inside.
    pub innermost: bool,
}

impl Loop {
    /// Its instructions, those of inner loops included.
    pub fn instructions<'a>(&self, listing: &'a Listing) -> &'a [Instruction] {
        &listing.instructions[self.first..=self.last]
    }

    fn contains(&self, other: &Loop) -> bool {
        self.first <= other.first
            && other.last <= self.last
            && (self.first, self.last) != (other.first, other.last)
    }
}

/// The loops in the order of their starts, outer ones first. What only waits for an mbarrier or spins at the end of the
/// program is none.
pub fn find(listing: &Listing) -> Vec<Loop> {
    let mut loops: Vec<Loop> = Vec::new();
    for (last, instruction) in listing.instructions.iter().enumerate() {
        let Some(first) = instruction.target.filter(|&t| t < last) else { continue };
        if only_waits(&listing.instructions[first..=last]) {
            continue;
        }
        match loops.iter_mut().find(|l| l.first == first) {
            Some(known) => known.last = last,
            None => loops.push(Loop { first, last, depth: 0, innermost: true }),
        }
    }
    loops.sort_by_key(|l| (l.first, std::cmp::Reverse(l.last)));
    let all = loops.clone();
    for l in &mut loops {
        l.depth = all.iter().filter(|other| other.contains(l)).count();
        l.innermost = !all.iter().any(|other| l.contains(other));
    }
    loops
}

/// A few instructions around the test of an mbarrier's phase.
fn only_waits(body: &[Instruction]) -> bool {
    body.len() <= 8 && body.iter().any(|i| i.name() == "SYNCS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(codes: &[&str]) -> Listing {
        let lines = codes.iter().enumerate().map(|(i, c)| format!("/*{:04x}*/ {c} ;\n", 16 * i));
        Listing::parse(&lines.collect::<String>())
    }

    #[test]
    fn nested_loops() {
        let l = listing(&[
            "MOV R0, RZ",
            "IADD3 R1, R1, 1, RZ",
            "FADD R2, R2, R3",
            "@P0 BRA 0x20",
            "FMUL R2, R2, R2",
            "@P1 BRA 0x10",
            "EXIT",
            "BRA 0x70",
        ]);
        let found = find(&l);
        let shape: Vec<_> = found.iter().map(|l| (l.first, l.last, l.depth, l.innermost)).collect();
        assert_eq!(shape, [(1, 5, 0, false), (2, 3, 1, true)]);
    }

    #[test]
    fn a_wait_is_no_loop() {
        let l = listing(&["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0", "@!P0 BRA 0x0", "EXIT"]);
        assert!(find(&l).is_empty());
    }
}
