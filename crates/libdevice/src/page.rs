//! The page `docs/libdevice.md`.

use std::fmt::Write;

use crate::all;

/// The page, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Functions of libdevice\n\n\
         `tl.extra.libdevice`, also as `tl.extra.cuda.libdevice`. Written from the table in `crates/libdevice/src/table.rs` by \
         `TILEWRIGHT_BLESS=1 cargo nextest run -p tilewright-libdevice page`; do not edit.\n\n\
         A call takes the overload whose types its arguments have. Where none fits, constants become what an overload takes, and \
         arguments of different types the wider one; tensors are broadcast. The result has the type behind the arrow: bits of \
         unsigned results are given as signed where Triton does so.\n\n\
         *Accuracy* is the largest error on a GPU, from the CUDA C++ Programming Guide: `exact` is the exact result, rounded once. \
         In the PTX simulator the same code runs. On the CPU executor results of `fp32` are computed in `fp64` and rounded once, \
         within 0.51 ulp; results of `fp64` are within 4 ulp, but near the zeros of Bessel functions and of `lgamma`, where the bound \
         is 5e-15 absolute, and for Bessel functions of |x| > 8, where it is 1e-14. \
         Where a function of the core language is as good, it is taken on a GPU, too: `cos`, `erf`, `log`, `log2`, `rsqrt`, `sin`, `tan`, `tanh`, within 3 ulp, \
         where zero may lose its sign.\n\n\
         | function | arguments | symbol | accuracy |\n| --- | --- | --- | --- |\n",
    );
    for f in all() {
        let params: Vec<&str> = f.params.iter().map(|p| p.name()).collect();
        let accuracy = f.accuracy.to_string().replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{}` | ({}) → {} | `{}` | {} |",
            f.name,
            params.join(", "),
            f.result,
            f.symbol,
            accuracy
        );
    }
    out
}
