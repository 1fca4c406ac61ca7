//! Which warps of a CTA run partitions, and how many registers their threads can have: arithmetic of the front end, which refuses
//! what doesn't fit, and of the pass that gives partitions their warps.

/// Registers of a streaming multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const REGISTERS: u32 = 65536;
/// Threads of a warp.
const WARP: u32 = 32;
/// Warps of a warp group, the only ones whose registers move (PTX ISA, "setmaxnreg").
pub const GROUP: u32 = 4;
/// The fewest and the most registers that a thread can ask for, in multiples of 8 (the same).
pub const MIN_REGISTERS: u32 = 24;
/// See [`MIN_REGISTERS`].
pub const MOST_REGISTERS: u32 = 256;
/// The most that the default partition gets: more leaves too little for the others.
pub const MAX_REGISTERS: u32 = 240;

/// Where partitions stand in a CTA whose first `main` warps are the default partition's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The default partition's warps.
    pub main: u32,
    /// The first warp of each partition, and how many it has.
    pub partitions: Vec<(u32, u32)>,
    /// Warps of the CTA.
    pub total: u32,
}

/// Registers that don't fit: what is wrong, with the sums, and what would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// The message.
    pub text: String,
    /// A note to it.
    pub note: String,
}

impl Placement {
    /// Places partitions behind the first `main` warps, the largest first. One of four warps or more begins at a warp group, smaller
    /// ones share warp groups, that of the default partition's last warps, too: where all sizes are powers of two, whole warp
    /// groups hold the sum.
    pub fn new(main: u32, warps: &[u32]) -> Self {
        let mut taken = vec![true; main as usize];
        let mut partitions = vec![(0, 0); warps.len()];
        for i in largest_first(warps) {
            let n = warps[i] as usize;
            let mut at = 0;
            while taken.iter().skip(at).take(n).any(|&taken| taken) {
                at += n.min(GROUP as usize);
            }
            taken.resize(taken.len().max(at + n), false);
            taken[at..at + n].fill(true);
            partitions[i] = (at as u32, warps[i]);
        }
        Self { main, partitions, total: taken.len() as u32 }
    }

    /// Has partitions share out the `main` warps, the largest first; none where these are more or fewer than theirs.
    pub fn of_main(main: u32, warps: &[u32]) -> Option<Self> {
        let mut partitions = vec![(0, 0); warps.len()];
        let mut next = 0;
        for i in largest_first(warps) {
            partitions[i] = (next, warps[i]);
            next += warps[i];
        }
        (next == main).then_some(Self { main, partitions, total: main })
    }

    /// The same in a CTA of whole warp groups.
    #[must_use]
    pub fn in_whole_groups(mut self) -> Self {
        self.total = self.total.next_multiple_of(GROUP);
        self
    }

    /// Registers of a thread when the kernel starts.
    pub fn registers_at_start(&self) -> u32 {
        (REGISTERS / (self.total * WARP)) & !7
    }

    /// Registers of the threads of the default partition and of each other one, which want so many: warp groups give some up or
    /// get more, as many as the partition in it that wants the most. The default partition must consist of whole ones.
    ///
    /// # Errors
    /// A CTA has fewer than all want together.
    pub fn registers(&self, wanted: &[u32]) -> Result<Vec<u32>, TooMany> {
        let of_group = self.of_groups(wanted);
        let behind = &of_group[(self.main / GROUP) as usize..];
        let used: u32 = behind.iter().map(|r| r * GROUP * WARP).sum();
        let all = self.registers_at_start() * self.total * WARP;
        let least = self.main * WARP * MIN_REGISTERS;
        if used + least > all {
            return Err(self.too_many(behind, used, least));
        }
        let left = (((all - used) / (self.main * WARP)) & !7).min(MAX_REGISTERS);
        let of_partition = |i: usize| self.groups(i).map(|g| of_group[g]).max().unwrap_or(left);
        Ok(std::iter::once(left).chain((0..wanted.len()).map(of_partition)).collect())
    }

    fn too_many(&self, groups: &[u32], used: u32, least: u32) -> TooMany {
        let each: Vec<String> = groups.iter().map(|r| format!("{} × {r}", GROUP * WARP)).collect();
        let all = self.registers_at_start() * self.total * WARP;
        let fits = ((all - least) / (groups.len() as u32 * GROUP * WARP)) & !7;
        TooMany {
            text: format!(
                "the workers want {} = {used} registers, and the default partition at least {} × {MIN_REGISTERS} = {least}: \
                 a CTA of {} warps has {all}",
                each.join(" + "),
                self.main * WARP,
                self.total
            ),
            note: format!(
                "warps get registers by groups of four, each as many as the worker in it that wants the most; {fits} for each \
                 thread of all workers would fit"
            ),
        }
    }

    /// The warp groups of a partition.
    fn groups(&self, partition: usize) -> std::ops::RangeInclusive<usize> {
        let (first, n) = self.partitions[partition];
        (first / GROUP) as usize..=((first + n - 1) / GROUP) as usize
    }

    /// Registers of a thread of each warp group; the fewest where nobody runs.
    fn of_groups(&self, wanted: &[u32]) -> Vec<u32> {
        let mut of_group = vec![MIN_REGISTERS; (self.total / GROUP) as usize];
        for (i, &wanted) in wanted.iter().enumerate() {
            let wanted = wanted.next_multiple_of(8).min(MOST_REGISTERS);
            for g in self.groups(i) {
                of_group[g] = of_group[g].max(wanted);
            }
        }
        of_group
    }
}

/// Indices of numbers of warps, those of the most first.
fn largest_first(warps: &[u32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..warps.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(warps[i]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 6] = [0, 1, 2, 4, 8, 16];

    #[test]
    fn partitions_stand_apart_and_fill_warp_groups() {
        for main in [1, 2, 4, 8, 16] {
            for [a, b, c] in SIZES.map(|a| SIZES.map(|b| SIZES.map(|c| [a, b, c]))).concat().concat() {
                let warps: Vec<u32> = [a, b, c].into_iter().filter(|&n| n > 0).collect();
                let sum = main + warps.iter().sum::<u32>();
                let placed = Placement::new(main, &warps);
                let mut owners = vec![0; placed.total as usize];
                owners[..main as usize].fill(1);
                for &(first, n) in &placed.partitions {
                    assert_eq!(first % n.min(GROUP), 0, "{placed:?}");
                    owners[first as usize..][..n as usize].iter_mut().for_each(|o| *o += 1);
                }
                assert!(owners.iter().all(|&o| o <= 1), "{placed:?}");
                assert_eq!(placed.in_whole_groups().total, sum.next_multiple_of(GROUP), "{main} {warps:?}");
            }
        }
    }

    #[test]
    fn a_cta_has_the_registers_that_its_warps_start_with() {
        // 65536 over 640 threads is 102, of which 96 are a multiple of 8.
        let placed = Placement::new(4, &[4, 4, 4, 4]);
        assert_eq!(placed.registers(&[112; 4]), Ok(vec![32, 112, 112, 112, 112]));
        let error = placed.registers(&[120; 4]).unwrap_err();
        assert!(error.text.ends_with("= 61440 registers, and the default partition at least 128 × 24 = 3072: a CTA of 20 warps has 61440"), "{error:?}");
        assert!(error.note.contains("; 112 for each"), "{error:?}");
    }
}
