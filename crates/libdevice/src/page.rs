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
         On Intel's GPUs, where there is no such library, `exact` functions are exact; the others are functions of `OpenCL.std` in fp64, or of our own made of \
         these, and for `fp32` rounded once, so that they are within 0.51 ulp. Of `fp64` OpenCL promises 2 ulp for `cbrt`, `log1p` and `rsqrt`, 3 for `exp`, `exp2`, `exp10`, `expm1`, `log`, \
         `log2` and `log10`, 4 for `acos`, `acosh`, `asin`, `asinh`, `cos`, `cosh`, `cospi`, `hypot`, `sin`, `sinh` and `sinpi`, 5 for `atan`, `atanh`, `tan` and `tanh`, 6 for `atan2`, 16 for `erf`, \
         `erfc`, `pow` and `tgamma`, and nothing for `lgamma`, of `fp32` either. The `fast_` ones are its functions of fp32. In the simulator they are the CPU executor's.\n\n\
         On Ascend's cores there are the functions of integers; the `exact` ones, which are exact and computed in integers, of `fp64` without remainders. `cos`, `erf`, `exp`, `exp2`, `log`, `log2`, `rsqrt`, `sin`, \
         `tan`, `tanh` of `fp32` and the `fast_` ones are instructions, or made of them, of whose accuracy no public document says anything; the others are made of arithmetic of `fp64`, and for `fp32` \
         rounded once: within 0.51 ulp, of `fp64` within 4 ulp, where `lgamma`, `pow` and `tgamma` are not accurate enough and so an error. So are `jn` and `yn`. What is no instruction goes element by element, by the scalar unit: slow.\n\n\
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
