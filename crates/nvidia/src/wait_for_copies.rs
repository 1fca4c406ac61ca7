//! Waits before copies of registers that a product under way has.
//!
//! Nothing may touch the accumulators of a `wgmma`, nor its left operand in registers, before the wait for it (PTX ISA,
//! "Asynchronous wgmma instructions"). The lowering makes each of them one register from the fence to the wait, by operands tied
//! to results; but such a tie is a copy to LLVM, which it usually takes out again. It can't where both registers hold something at
//! once, as where the result of a loop's product is also looked at behind the loop; and then the copy may be left between the
//! product and its wait. Seldom enough that waiting for all products there is the answer.
//!
//! ```text
//! wgmma.mma_async… {%f1, …}, …;         wgmma.mma_async… {%f1, …}, …;
//! wgmma.commit_group.sync.aligned;      wgmma.commit_group.sync.aligned;
//!                                  ->   wgmma.wait_group.sync.aligned 0;
//! mov.f32 %f9, %f1;                     mov.f32 %f9, %f1;
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ptx::branch_targets;

const WAIT: &str = "wgmma.wait_group.sync.aligned";
/// How many groups are told apart; older ones count as one.
const GROUPS: usize = 8;

/// Puts in the waits that are missing.
pub fn wait_for_copies(ptx: String) -> String {
    if !ptx.contains("wgmma.mma_async") {
        return ptx;
    }
    let lines: Vec<&str> = ptx.lines().map(str::trim_ascii).collect();
    let missing = missing_waits(&lines);
    if missing.is_empty() {
        return ptx;
    }
    let mut out = String::with_capacity(ptx.len() + missing.len() * (WAIT.len() + 5));
    let mut missing = missing.into_iter().peekable();
    for (i, line) in ptx.split_inclusive('\n').enumerate() {
        if missing.next_if_eq(&i).is_some() {
            out.push_str(&format!("\t{WAIT} 0;\n"));
        }
        out.push_str(line);
    }
    out
}

/// Which of the lines, without what indents them, need a wait before them, by following the flow of control until nothing new is found.
fn missing_waits(lines: &[&str]) -> Vec<usize> {
    let mut at_labels: FxHashMap<&str, UnderWay<'_>> = FxHashMap::default();
    loop {
        let mut changed = false;
        let mut missing = Vec::new();
        // `None` behind a branch: nothing comes here but by a label.
        let mut now: Option<UnderWay<'_>> = None;
        for (i, &line) in lines.iter().enumerate() {
            if let Some(label) = line.strip_suffix(':') {
                let here = now.get_or_insert_default();
                if let Some(before) = at_labels.get(label) {
                    here.join(before);
                }
            } else if line.starts_with('{') && now.is_none() {
                now = Some(UnderWay::default()); // a function's body
            }
            let Some(state) = &mut now else { continue };
            if state.step(line) {
                missing.push(i);
            }
            for target in branch_targets(line) {
                changed |= at_labels.entry(target).or_default().join(state);
            }
            if leaves(line) {
                now = None;
            }
        }
        if !changed {
            return missing;
        }
    }
}

/// Whether what follows a line is not reached through it. (A list of targets stands before the branch that goes to them.)
fn leaves(line: &str) -> bool {
    ["bra", "ret;", "exit;", "brx"].iter().any(|word| line.starts_with(word))
}

/// The registers of the products under way, in groups as they were committed, the newest first.
#[derive(Debug, Clone, Default, PartialEq)]
struct UnderWay<'a> {
    groups: Vec<FxHashSet<&'a str>>,
    /// Not committed yet.
    open: FxHashSet<&'a str>,
}

impl<'a> UnderWay<'a> {
    /// What a line does. Whether a wait must come before it.
    fn step(&mut self, line: &'a str) -> bool {
        if let Some(operands) = line.strip_prefix("wgmma.mma_async") {
            let mut rest = operands;
            while let Some((_, list)) = rest.split_once('{') {
                let (list, behind) = list.split_once('}').unwrap_or((list, ""));
                self.open.extend(registers(list));
                rest = behind;
            }
        } else if line.starts_with("wgmma.commit_group") {
            self.groups.insert(0, std::mem::take(&mut self.open));
            if self.groups.len() > GROUPS {
                let oldest = self.groups.pop().unwrap_or_default();
                self.groups[GROUPS - 1].extend(oldest);
            }
        } else if let Some(rest) = line.strip_prefix(WAIT) {
            let pending = rest.trim().trim_end_matches(';').parse().unwrap_or(0);
            self.groups.truncate(pending);
        } else if self.touched_by(line) {
            *self = UnderWay::default();
            return true;
        }
        false
    }

    fn touched_by(&self, line: &str) -> bool {
        let nothing = self.open.is_empty() && self.groups.iter().all(FxHashSet::is_empty);
        !nothing
            && !line.starts_with(['.', '/', '$'])
            && registers(line).any(|r| self.open.contains(r) || self.groups.iter().any(|g| g.contains(r)))
    }

    /// Adds what is under way on another path. Whether that was more.
    fn join(&mut self, other: &UnderWay<'a>) -> bool {
        let count = |s: &Self| s.open.len() + s.groups.iter().map(FxHashSet::len).sum::<usize>();
        let before = count(self);
        self.open.extend(&other.open);
        if self.groups.len() < other.groups.len() {
            self.groups.resize_with(other.groups.len(), FxHashSet::default);
        }
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            mine.extend(theirs);
        }
        count(self) > before
    }
}

/// The registers that a text names. Those of an author's own code have longer names than LLVM's (PTX ISA, "Identifiers").
fn registers(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
    text.match_indices('%').map(move |(at, _)| {
        let end = text[at + 1..].find(ends).map_or(text.len(), |n| at + 1 + n);
        &text[at..end]
    })
}

#[cfg(test)]
mod tests {
    use super::wait_for_copies;

    /// A function with this body, as LLVM writes it.
    fn function(body: &str) -> String {
        let body: String = body.lines().map(|l| format!("\t{}\n", l.trim())).collect();
        format!(".visible .entry f()\n{{\n{body}}}\n")
    }

    const PRODUCT: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2}, {%r1, %r2}, %rd1, p;
        wgmma.commit_group.sync.aligned;";

    #[test]
    fn a_copy_waits() {
        let before = function(&format!(
            "{PRODUCT}\nadd.s64 %rd1, %rd1, 2;\nmov.f32 %f9, %f2;\nmov.f32 %f8, %f1;\nret;"
        ));
        let after = wait_for_copies(before.clone());
        let wait = "\twgmma.wait_group.sync.aligned 0;\n\tmov.f32 %f9, %f2;\n\tmov.f32 %f8";
        assert!(after.contains(wait), "{after}");
        assert_eq!(after.len(), before.len() + "\twgmma.wait_group.sync.aligned 0;\n".len());
        assert_eq!(wait_for_copies(after.clone()), after);
    }

    #[test]
    fn what_has_been_waited_for_is_left_alone() {
        let other = PRODUCT.replace("%f", "%f1").replace("%r", "%r1");
        let wait = "wgmma.wait_group.sync.aligned 1;";
        let text =
            function(&format!("{PRODUCT}\n{other}\n{wait}\nmov.f32 %f9, %f2;\nmov.b32 %r3, %r1;\nret;"));
        assert_eq!(wait_for_copies(text.clone()), text);
    }

    #[test]
    fn names_of_an_authors_registers_are_told_apart() {
        let product = PRODUCT.replace("%f", "%raw_f").replace("%rd1", "%raw_rd1");
        let text = function(&format!("{product}\nadd.s64 %raw_rd1, %raw_rd1, 2;\nret;"));
        assert_eq!(wait_for_copies(text.clone()), text);
        let copied = function(&format!("{product}\nmov.f32 %raw_f9, %raw_f2;\nret;"));
        let after = wait_for_copies(copied);
        assert!(after.contains("\twgmma.wait_group.sync.aligned 0;\n\tmov.f32 %raw_f9"), "{after}");
    }

    #[test]
    fn a_product_is_under_way_in_the_next_iteration() {
        let text = function(&format!(
            "bra.uni $L__BB0_2;\n$L__BB0_1:\nmov.b32 %r7, %r2;\n$L__BB0_2:\n{PRODUCT}\n@%p1 bra $L__BB0_1;\nret;"
        ));
        let after = wait_for_copies(text);
        assert!(after.contains("$L__BB0_1:\n\twgmma.wait_group.sync.aligned 0;\n\tmov.b32 %r7"), "{after}");
    }

    #[test]
    fn nothing_is_under_way_behind_a_return() {
        let text = function(&format!("{PRODUCT}\nret;\n$L__BB0_1:\nmov.b32 %r7, %r2;\nret;"));
        assert_eq!(wait_for_copies(text.clone()), text);
    }
}
