//! Conversions of floats of 8 bits, and products of them.

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Diagnostic, FloatKind, Module, Type, TypeKind, Value};
use tilewright_libdevice::fp8::{self, Format};
use tilewright_libdevice::record::{Convert, Recorder, Word};
use tilewright_libdevice::soft::{self, Rounding};

use super::super::unsupported;
use super::elements::Elements;
use super::functions::one_by_one;

/// The format of a type of floats of 8 bits, and whether that is known here.
pub(super) fn format(module: &Module, element: Type) -> Option<Result<Format, FloatKind>> {
    match *module.type_kind(element) {
        TypeKind::Float(FloatKind::F8E4M3FN) => Some(Ok(Format::E4M3)),
        TypeKind::Float(FloatKind::F8E5M2) => Some(Ok(Format::E5M2)),
        TypeKind::Float(other) if other.bits() == 8 => Some(Err(other)),
        _ => None,
    }
}

/// Expands a conversion from or to such floats; leaves any other.
pub(super) fn conversion(module: &mut Module, cast: tt::FpToFp) -> Result<(), Diagnostic> {
    let (src, ty) = (cast.src(module), module.value_type(cast.result(module)));
    let from = module.element_type(module.value_type(src));
    let to = module.element_type(ty);
    let formats = [from, to].map(|element| format(module, element));
    let towards_zero = cast.rounding(module) == Some(tt::RoundingMode::Rtz);
    if from == Type::F64 && (towards_zero || formats[1].is_some()) {
        return narrowed(module, cast);
    }
    if formats == [None, None] {
        return Ok(());
    }
    let refused = |of: FloatKind| unsupported(module, cast.0, format!("conversions of {}", of.name()));
    let [from_format, to_format] = [formats[0].transpose(), formats[1].transpose()];
    let (from_format, to_format) = (from_format.map_err(refused)?, to_format.map_err(refused)?);
    let mut e = Elements { b: Builder::before(module, cast.0), like: ty };
    let mut value = src;
    let mut element = from;
    if let Some(format) = from_format {
        let code = bits(&mut e, value);
        (value, element) = (fp8::widen(&mut e, code, format), Type::F16);
    }
    // (fp32 holds all of the others.)
    if element != to && element != Type::F32 {
        let wide = e.of(Type::F32);
        (value, element) = (arith::Extf::build(&mut e.b, value, wide).out(e.b.module), Type::F32);
    }
    if let Some(format) = to_format {
        let code = fp8::narrow(&mut e, value, format, towards_zero);
        value = arith::Bitcast::build(&mut e.b, code, ty).out(e.b.module);
    } else if element != to {
        let wider = e.b.module.bits(to) > 32;
        let b = &mut e.b;
        value = match wider {
            true => arith::Extf::build(b, value, ty).out(b.module),
            false => arith::Truncf::build(b, value, ty).out(b.module),
        };
    }
    module.replace_op(cast.0, &[value]);
    Ok(())
}

/// A conversion from fp64 to fewer bits, by way of fp32: rounded so that what comes next rounds as if it were the only one.
fn narrowed(module: &mut Module, cast: tt::FpToFp) -> Result<(), Diagnostic> {
    let (src, ty) = (cast.src(module), module.value_type(cast.result(module)));
    let single = module.with_element(ty, Type::F32);
    let to_single = module.element_type(ty) == Type::F32;
    let rounding = if to_single { Rounding::Zero } else { Rounding::Odd };
    let between = tt::FpToFp::build(&mut Builder::before(module, cast.0), src, None, single);
    let made = one_by_one(module, between.0, &[src], |e, args| Some(soft::narrowed(e, args[0], rounding)));
    let made = made.unwrap_or(src);
    module.erase_op(between.0);
    if to_single {
        module.replace_op(cast.0, &[made]);
        return Ok(());
    }
    module.set_operand(cast.0, 0, made);
    conversion(module, cast)
}

/// The bytes that floats of 8 bits are.
fn bits(e: &mut Elements<'_>, value: Value) -> Value {
    e.convert(Convert::Bits, value, Word::I8)
}

/// Makes fp16 of a product's operands that are floats of 8 bits: products of fp16 are exact, and so what they were.
pub(super) fn operands(module: &mut Module, dot: tt::Dot) {
    for i in 0..2 {
        let value = module.operands(dot.0)[i];
        let ty = module.value_type(value);
        let Some(Ok(format)) = format(module, module.element_type(ty)) else { continue };
        let mut e = Elements { b: Builder::before(module, dot.0), like: ty };
        let code = bits(&mut e, value);
        let wide = fp8::widen(&mut e, code, format);
        module.set_operand(dot.0, i, wide);
    }
}
