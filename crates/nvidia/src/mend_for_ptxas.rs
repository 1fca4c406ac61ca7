//! PTX that `ptxas` assembles wrongly, written in another way.
//!
//! **The high half of a word as an operand of `selp.b16`.** LLVM takes it out with `mov.b32 {tmp, high}, word`. Where the other
//! operand comes from an instruction that can be predicated (a load, a conversion), `ptxas` makes the selection by predicating
//! that instruction over a copy of the half, and in larger kernels copies the *low* half. Seen with `ptxas` 12.8, 12.9 and 13.x,
//! from `-O1` on, for `sm_90a`; with a shift it is right and takes as many instructions.
//!
//! ```text
//! { .reg .b16 tmp; mov.b32 {tmp, %rs2}, %r1; }       { .reg .b32 tmp; shr.u32 tmp, %r1, 16; cvt.u16.u32 %rs2, tmp; }
//! …                                             ->   …
//! selp.b16 %rs5, %rs4, %rs2, %p2;                    selp.b16 %rs5, %rs4, %rs2, %p2;
//! ```

use rustc_hash::FxHashSet;

/// Takes high halves that are selected out of their words by a shift. (Registers are numbered anew in each function; one that
/// is selected in another function is shifted too, which is as right.)
pub fn select_of_high_halves(ptx: String) -> String {
    let mut selected = FxHashSet::default();
    for line in ptx.lines() {
        if let Some(operands) = line.trim_start().strip_prefix("selp.b16") {
            selected.extend(operands.split(',').skip(1).take(2).map(str::trim));
        }
    }
    if selected.is_empty()
        || !ptx.lines().any(|line| high_half(line).is_some_and(|(half, _)| selected.contains(half)))
    {
        return ptx;
    }
    let mut out = String::with_capacity(ptx.len() + ptx.len() / 16);
    for line in ptx.split_inclusive('\n') {
        match high_half(line) {
            Some((half, word)) if selected.contains(half) => {
                out.push_str(&format!(
                    "\t{{ .reg .b32 tmp; shr.u32 tmp, {word}, 16; cvt.u16.u32 {half}, tmp; }}\n"
                ));
            }
            _ => out.push_str(line),
        }
    }
    out
}

/// The half and the word, if that is what the line takes apart.
fn high_half(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("{ .reg .b16 tmp; mov.b32 {tmp, ")?;
    rest.strip_suffix("; }")?.split_once("}, ")
}

#[cfg(test)]
mod tests {
    use super::select_of_high_halves;

    #[test]
    fn only_what_is_selected_changes() {
        let ptx = "\t{ .reg .b16 tmp; mov.b32 {tmp, %rs2}, %r1; }\n\
                   \t{ .reg .b16 tmp; mov.b32 {tmp, %rs3}, %r1; }\n\
                   \tselp.b16 \t%rs5, %rs4, %rs2, %p2;\n";
        let mended = select_of_high_halves(ptx.to_string());
        assert_eq!(
            mended,
            "\t{ .reg .b32 tmp; shr.u32 tmp, %r1, 16; cvt.u16.u32 %rs2, tmp; }\n\
             \t{ .reg .b16 tmp; mov.b32 {tmp, %rs3}, %r1; }\n\
             \tselp.b16 \t%rs5, %rs4, %rs2, %p2;\n"
        );
        assert_eq!(select_of_high_halves(mended.clone()), mended);
    }
}
