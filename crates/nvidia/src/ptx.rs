//! What is read from a line of PTX, as LLVM writes it, by what changes it before `ptxas` does.

/// The labels that a line may go to: a branch's, or those in a list for `brx.idx`.
pub fn branch_targets(line: &str) -> impl Iterator<Item = &str> {
    let list = match line.split_once("bra") {
        Some((before, rest)) if before.is_empty() || before.starts_with('@') || before == "." => rest,
        _ => "",
    };
    list.split([' ', '\t', ',', ';']).filter(|word| word.starts_with('$'))
}
