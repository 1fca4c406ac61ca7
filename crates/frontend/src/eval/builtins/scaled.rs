//! Products of matrices in microscaling formats.

use tilewright_ir::attrs::DefaultTrue;
use tilewright_ir::dialect::tt::{self, ScaleDotElemType as Format};

use super::super::call::Args;
use super::super::{Error, Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::value::{Shape, Tensor};

/// One factor of a scaled product.
struct Factor {
    /// The name of the argument, `lhs` or `rhs`.
    name: &'static str,
    value: Tensor,
    scale: Option<Tensor>,
    format: Format,
    k_pack: bool,
    /// How many elements it has along K, and along M or N.
    k: u32,
    other: u32,
}

impl Evaluator<'_> {
    pub(super) fn dot_scaled(&mut self, args: &Args) -> Eval<Tensor> {
        let lhs = self.scaled_factor(args, ["lhs", "lhs_scale", "lhs_format", "lhs_k_pack"])?;
        let rhs = self.scaled_factor(args, ["rhs", "rhs_scale", "rhs_format", "rhs_k_pack"])?;
        let (a, b) = (&lhs.value, &rhs.value);
        let rank = a.shape.len();
        if b.shape.len() != rank || a.shape[..rank - 2] != b.shape[..rank - 2] {
            return Err(self.scaled_shapes(a, b, "needs operands of one rank and with equal batch extents"));
        }
        if lhs.k != rhs.k {
            let what = format!("needs equal K, but the operands have {} and {} elements", lhs.k, rhs.k);
            return Err(self.scaled_shapes(a, b, &what));
        }
        let mut shape: Shape = a.shape[..rank - 2].into();
        shape.extend([lhs.other, rhs.other]);
        for factor in [&lhs, &rhs] {
            self.check_scale(factor)?;
        }
        let half = [lhs.format, rhs.format].contains(&Format::Fp16);
        let out = self.dtype_arg(args, "out_dtype")?;
        let result = match out.as_scalar() {
            Some(out @ Scalar::Fp32) => out,
            Some(out @ Scalar::Fp16) if half => out,
            _ => {
                return Err(self
                    .error(format!("out_dtype of tl.dot_scaled is {out}; possible are float32 and, with fp16 operands, float16"))
                    .note("convert the result with .to(dtype)")
                    .into());
            }
        };
        let acc = self.dot_acc(args, &shape, result)?;
        let fast_math = self.bool_arg(args, "fast_math")?;
        let value = tt::DotScaled::build(
            &mut builder!(self),
            lhs.value.value,
            rhs.value.value,
            acc.value,
            lhs.scale.map(|s| s.value),
            rhs.scale.map(|s| s.value),
            lhs.format,
            rhs.format,
            fast_math,
            DefaultTrue(lhs.k_pack),
            DefaultTrue(rhs.k_pack),
        )
        .result(&self.module);
        Ok(Tensor { value, dtype: result.into(), shape })
    }

    fn scaled_shapes(&self, a: &Tensor, b: &Tensor, what: &str) -> Error {
        self.error(format!("tl.dot_scaled {what}: {} and {}", a.ty(), b.ty()))
            .note(
                "it multiplies [M, K] by [K, N], or [B, M, K] by [B, K, N]; a uint8 of e2m1 is two elements",
            )
            .into()
    }

    /// The factor that the arguments of these names say: elements, scales, format, packing.
    fn scaled_factor(&mut self, args: &Args, names: [&'static str; 4]) -> Eval<Factor> {
        let [name, scale, format, k_pack] = names;
        let value = self.tensor_arg(args, name)?;
        let given = self.str_arg(args, format)?;
        let Some(format) = Format::from_keyword(&given) else {
            return Err(self
                .error(format!("`{format}` of tl.dot_scaled is \"{given}\"; possible are \"e2m1\", \"e4m3\", \"e5m2\", \"bf16\", \"fp16\"")));
        };
        let (own, bits) = match format {
            Format::E2M1 => (None, Scalar::UInt8),
            Format::E4M3 => (Some(Scalar::Fp8E4Nv), Scalar::UInt8),
            Format::E5M2 => (Some(Scalar::Fp8E5), Scalar::UInt8),
            Format::Bf16 => (Some(Scalar::Bf16), Scalar::UInt16),
            Format::Fp16 => (Some(Scalar::Fp16), Scalar::UInt16),
        };
        let found = value.number();
        if found != Some(bits) && (own.is_none() || found != own) {
            let possible = own.map_or(bits.to_string(), |own| format!("{own} or {bits}"));
            return Err(self.error(format!(
                "`{name}` of tl.dot_scaled is {}, but elements of {given} are {possible}",
                value.ty()
            )));
        }
        let rank = value.shape.len();
        if !(rank == 2 || rank == 3) {
            return Err(self.error(format!(
                "`{name}` of tl.dot_scaled is {}; it must be a matrix or a batch of matrices",
                value.ty()
            )));
        }
        let k_pack_name = k_pack;
        let k_pack = self.bool_arg(args, k_pack)?;
        if !k_pack && format != Format::E2M1 {
            return Err(self.error(format!(
                "`{k_pack_name}` of tl.dot_scaled is False, but only e2m1 is packed, and `{name}` is {given}"
            )));
        }
        let scale = match args.optional(scale) {
            None => None,
            Some(_) => Some(self.tensor_arg(args, scale)?),
        };
        let value = match own {
            Some(own) => self.bitcast(&value, &own.into())?,
            None => value,
        };
        let pair = if format == Format::E2M1 { 2 } else { 1 };
        let (mut other, mut k) = (value.shape[rank - 2], value.shape[rank - 1]);
        if name == "rhs" {
            (other, k) = (k, other);
        }
        *(if k_pack { &mut k } else { &mut other }) *= pair;
        Ok(Factor { name, value, scale, format, k_pack, k, other })
    }

    /// Scales have the factor's rows (for the right one its columns), and one column for so many elements.
    fn check_scale(&self, factor: &Factor) -> Eval<()> {
        let Some(scale) = &factor.scale else { return Ok(()) };
        let name = factor.name;
        let elements = match scale.number() {
            Some(Scalar::UInt8 | Scalar::Int8) => 32,
            Some(Scalar::Fp8E4Nv) => 16,
            _ => {
                return Err(self.error(format!(
                    "`{name}_scale` of tl.dot_scaled is {}; scales are uint8 (e8m0) or float8e4nv",
                    scale.ty()
                )));
            }
        };
        let rank = factor.value.shape.len();
        let mut expected: Shape = factor.value.shape[..rank - 2].into();
        expected.extend([factor.other, factor.k / elements]);
        if !factor.k.is_multiple_of(elements) || scale.shape != expected {
            return Err(self
                .error(format!("`{name}_scale` of tl.dot_scaled is {}, but `{name}` has {} x {} elements", scale.ty(), factor.other, factor.k))
                .note(format!("there is a scale for {elements} elements along K: [M, K // {elements}] for lhs, [N, K // {elements}] for rhs"))
                .into());
        }
        Ok(())
    }
}
