//! What is read from a line of PTX, as LLVM writes it, by what changes it before `ptxas` does.

/// The labels that a line may go to: a branch's, or those in a list for `brx.idx`. (Each line is asked: most are told by their first
/// letter.)
pub fn branch_targets(line: &str) -> impl Iterator<Item = &str> {
    let list = match line.as_bytes().first() {
        Some(b'b') => line.strip_prefix("bra"),
        Some(b'@') => line.split_once("bra").map(|(_, list)| list),
        Some(b'.') => line.strip_prefix(".bra"),
        _ => None,
    };
    list.unwrap_or_default().split([' ', '\t', ',', ';']).filter(|word| word.starts_with('$'))
}
