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
//!
//! **Loops with `wgmma`.** Where `ptxas` knows how often a loop runs and unrolls it, it takes the accumulators of the second copy of
//! the body for those of the first: what is computed from them stays as it was, and products that overwrite theirs are dropped.
//! Seen with 12.8 and 13.5. It unrolls few of them (none that was measured for `docs/performance.md`), so it is asked to
//! unroll none.
//!
//! ```text
//! $L__BB0_1:                       $L__BB0_1:
//!                             ->     .pragma "nounroll";
//!   wgmma.mma_async… {%r1}, …;       wgmma.mma_async… {%r1}, …;
//!   @%p1 bra $L__BB0_1;              @%p1 bra $L__BB0_1;
//! ```
//!
//! **A counter that comes from below zero, compared without its sign.** Of `i + 1 < 1` LLVM makes `i >u 0x7ffffffe`, where `i` is what the loop
//! counts. `ptxas` compares the next value, `i + 1 >u 0x7fffffff`, as if it did not wrap: from -1 it does, and the loop ends one step
//! early (`range(-3, 1)` ran three times). Seen with 12.8, 13.0 and 13.5. With the sign turned round it compares `i`.
//!
//! ```text
//! setp.gt.u32 %p1, %r1, 2147483646;  ->  { .reg .b32 tmp; xor.b32 tmp, %r1, 0x80000000; setp.gt.s32 %p1, tmp, -2; }
//! ```
//!
//! **Bytes of halves, stored side by side as numbers.** Where a register that `st.v2.u8` stores a byte of comes from a conversion to
//! `f16`, `ptxas` stores what that number is as an integer: it converts it back. Seen with 13.0 and 13.5, at every level of optimization. Of `.b8` it
//! stores the bits.
//!
//! ```text
//! cvt.rn.f16.s64 %rs1, %rd1;             cvt.rn.f16.s64 %rs1, %rd1;
//! st.v2.u8 [%SP], {%rs1, %rs2};      ->  st.v2.b8 [%SP], {%rs1, %rs2};
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ptx::branch_targets;

/// Writes all of it in the other way.
pub fn mend_for_ptxas(ptx: String) -> String {
    compare_with_sign(keep_loops_with_products(select_of_high_halves(bytes_as_bits(ptx))))
}

/// Stores bytes side by side as bits.
fn bytes_as_bits(ptx: String) -> String {
    let is_one = |line: &str| {
        line.trim_start().starts_with("st.") && (line.contains(".v2.u8") || line.contains(".v4.u8"))
    };
    if !ptx.contains(".v2.u8") && !ptx.contains(".v4.u8") {
        return ptx;
    }
    let mend = |line: &str| {
        if is_one(line) { line.replacen(".u8", ".b8", 1) } else { line.to_string() }
    };
    ptx.split_inclusive('\n').map(mend).collect()
}

/// Turns the sign of what is compared with nearly the largest positive number.
fn compare_with_sign(ptx: String) -> String {
    if !["21474", "92233720368547"].iter().any(|digits| ptx.contains(&format!(", {digits}"))) {
        return ptx;
    }
    let mut out = String::with_capacity(ptx.len() + 256);
    for line in ptx.split_inclusive('\n') {
        match with_sign(line) {
            Some(mended) => out.push_str(&mended),
            None => out.push_str(line),
        }
    }
    out
}

/// The line with its comparison signed, if it is one of those.
fn with_sign(line: &str) -> Option<String> {
    // The steps of loops that are looked for.
    const STEPS: i64 = 1 << 12;
    let (operation, operands) =
        line.trim_ascii().strip_prefix("setp.")?.strip_suffix(';')?.split_once(' ')?;
    let (how, bits, sign) = match operation.split_once('.')? {
        (how @ ("gt" | "ge" | "lt" | "le"), "u32") => (how, 32, i64::from(i32::MAX)),
        (how @ ("gt" | "ge" | "lt" | "le"), "u64") => (how, 64, i64::MAX),
        _ => return None,
    };
    let mut operands = operands.split(',').map(str::trim_ascii);
    let (to, value, number) = (operands.next()?, operands.next()?, operands.next()?.parse::<i64>().ok()?);
    let below = sign.checked_sub(number)?;
    // `number` with its sign turned, which is that much less than -1.
    (0..=STEPS).contains(&below).then(|| {
        let turned = -1 - below;
        format!(
            "\t{{ .reg .b{bits} tmp; xor.b{bits} tmp, {value}, {:#x}; setp.{how}.s{bits} {to}, tmp, {turned}; }}\n",
            1u64 << (bits - 1)
        )
    })
}

/// Asks for loops with products of warp groups not to be unrolled.
fn keep_loops_with_products(ptx: String) -> String {
    const PRODUCT: &str = "wgmma.mma_async";
    if !ptx.contains(PRODUCT) {
        return ptx;
    }
    let mut labels: FxHashMap<&str, usize> = FxHashMap::default();
    let (mut heads, mut last_product) = (FxHashSet::default(), None);
    for (i, line) in ptx.lines().enumerate() {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label, i);
        } else if line.starts_with(PRODUCT) {
            last_product = Some(i);
        } else {
            let back =
                branch_targets(line.trim_ascii_start()).filter_map(|target| labels.get(target).copied());
            heads.extend(back.filter(|&head| last_product.is_some_and(|product| product > head)));
        }
    }
    if heads.is_empty() {
        return ptx;
    }
    let mut out = String::with_capacity(ptx.len() + 32 * heads.len());
    for (i, line) in ptx.split_inclusive('\n').enumerate() {
        out.push_str(line);
        if heads.contains(&i) {
            out.push_str("\t.pragma \"nounroll\";\n");
        }
    }
    out
}

/// Takes high halves that are selected out of their words by a shift. (Registers are numbered anew in each function; one that
/// is selected in another function is shifted too, which is as right.)
fn select_of_high_halves(ptx: String) -> String {
    const SELECTION: &str = "selp.b16";
    if !ptx.contains(SELECTION) {
        return ptx;
    }
    let mut selected = FxHashSet::default();
    for line in ptx.lines() {
        if let Some(operands) = line.trim_ascii_start().strip_prefix(SELECTION) {
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
    let rest = line.trim_ascii().strip_prefix("{ .reg .b16 tmp; mov.b32 {tmp, ")?;
    rest.strip_suffix("; }")?.split_once("}, ")
}

#[cfg(test)]
mod tests {
    use super::{bytes_as_bits, compare_with_sign, keep_loops_with_products, select_of_high_halves};

    #[test]
    fn only_comparisons_with_the_largest_numbers_are_signed() {
        let ptx = "\tsetp.gt.u32 \t%p1, %r5, 2147483646;\n\tsetp.lt.u64 \t%p2, %rd1, 9223372036854775807;\n\
                   \tsetp.gt.u32 \t%p3, %r5, 2147400000;\n\tsetp.gt.s32 \t%p4, %r5, 2147483646;\n\
                   \tsetp.gt.u32 \t%p5, %r5, %r6;\n\tmov.b32 \t%r1, 2147483646;\n\tsetp.gt.u64 \t%p6, %rd1, -4294967297;\n";
        let mended = compare_with_sign(ptx.to_string());
        assert_eq!(
            mended,
            "\t{ .reg .b32 tmp; xor.b32 tmp, %r5, 0x80000000; setp.gt.s32 %p1, tmp, -2; }\n\
             \t{ .reg .b64 tmp; xor.b64 tmp, %rd1, 0x8000000000000000; setp.lt.s64 %p2, tmp, -1; }\n\
             \tsetp.gt.u32 \t%p3, %r5, 2147400000;\n\tsetp.gt.s32 \t%p4, %r5, 2147483646;\n\
             \tsetp.gt.u32 \t%p5, %r5, %r6;\n\tmov.b32 \t%r1, 2147483646;\n\tsetp.gt.u64 \t%p6, %rd1, -4294967297;\n"
        );
        assert_eq!(compare_with_sign(mended.clone()), mended);
    }

    #[test]
    fn only_bytes_stored_side_by_side_change() {
        let ptx = "\tst.v2.u8 \t[%SP+2], {%rs1, %rs2};\n\tst.u8 \t[%SP], %rs1;\n\tld.v2.u8 \t{%rs3, %rs4}, [%SP];\n";
        assert_eq!(bytes_as_bits(ptx.to_string()), ptx.replacen(".v2.u8", ".v2.b8", 1));
    }

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

    #[test]
    fn only_loops_with_products_are_kept() {
        let ptx = "$L__BB0_1:\n\tadd.s32 %r1, %r1, 1;\n\t@%p1 bra \t$L__BB0_1;\n\
                   $L__BB0_2:\nwgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r89, %r90}, %rd26, %rd27, p;\n\
                   \t@%p2 bra \t$L__BB0_2;\n\t@%p3 bra \t$L__BB0_4;\n$L__BB0_4:\n\tret;\n";
        let kept = keep_loops_with_products(ptx.to_string());
        assert_eq!(kept, ptx.replace("$L__BB0_2:\n", "$L__BB0_2:\n\t.pragma \"nounroll\";\n"));
    }
}
