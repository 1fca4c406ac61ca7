//! Functions of libdevice, and operations whose rounding the language says and no instruction promises, in integers.

use tilewright_ir::dialect::{arith, math, tt};
use tilewright_ir::{Builder, Diagnostic, InsertPoint, Module, Op, Opcode, Type, Value};
use tilewright_libdevice::record::{Binary, Convert, Recorder, Word};
use tilewright_libdevice::soft::{self, Rounding};
use tilewright_libdevice::{Accuracy, Function, MACHINE, integers, of_symbol, recorded};

use super::super::unsupported;
use super::elements::{Elements, of_word};

/// Expands a function of libdevice.
///
/// # Errors
/// One that is not there.
pub(super) fn library(module: &mut Module, call: tt::ExternElementwise) -> Result<(), Diagnostic> {
    let symbol = call.symbol(module);
    let own = !call.libpath(module).is_empty() || call.libname(module) == MACHINE;
    let function = of_symbol(&symbol).filter(|_| !own);
    let missing = |m: &Module| Err(unsupported(m, call.0, format!("the function `{symbol}`")));
    let Some(function) = function else { return missing(module) };
    let args = call.srcs(module).to_vec();
    let element = |m: &Module, v: Value| m.element_type(m.value_type(v));
    let fits = args.iter().zip(function.params).all(|(&v, ty)| {
        let found = element(module, v);
        module.bits(found) == ty.bits() && module.is_float(found) == ty.is_float()
    });
    if !fits || args.len() != function.params.len() {
        return Err(Diagnostic::at(module, module.op_loc(call.0), function.takes()));
    }
    let like = module.value_type(call.result(module));
    let mut e = Elements { b: Builder::before(module, call.0), like };
    if let Some(made) = instruction(&mut e, function.name, &args) {
        module.replace_op(call.0, &[made]);
        return Ok(());
    }
    let made = match is_wide(function) {
        true => one_by_one(module, call.0, &args, |e, args| recorded::record(e, function, args)),
        false => recorded::record(&mut e, function, &args),
    };
    match made {
        Some(made) => {
            module.replace_op(call.0, &[made]);
            Ok(())
        }
        None => missing(module),
    }
}

/// Whether a function is computed with numbers of 64 bits.
fn is_wide(function: &Function) -> bool {
    const NAMES: [&str; 11] = [
        "byte_perm",
        "fma",
        "fmod",
        "ilogb",
        "ldexp",
        "logb",
        "mulhi",
        "remainder",
        "scalbn",
        "sqrt",
        "llrint",
    ];
    let wide = function.params.iter().chain([&function.result]).any(|ty| ty.bits() == 64);
    let inexact = function.accuracy != Accuracy::Exact;
    let directed =
        |name: &str| name.rsplit_once("_r").is_some_and(|(_, m)| ["n", "z", "d", "u"].contains(&m));
    wide || inexact || directed(function.name) || NAMES.contains(&function.name)
}

/// What a function gives of elements, computed by the scalar unit: vectors have no integers of 64 bits, and so many numbers between would not fit into the memory.
pub(super) fn one_by_one(
    module: &mut Module,
    op: Op,
    args: &[Value],
    record: impl FnOnce(&mut Elements<'_>, &[Value]) -> Option<Value>,
) -> Option<Value> {
    let like = module.value_type(module.results(op)[0]);
    if !module.is_tensor(like) {
        return record(&mut Elements { b: Builder::before(module, op), like }, args);
    }
    let element = module.element_type(like);
    let scalars: Vec<Type> = args.iter().map(|&v| module.element_type(module.value_type(v))).collect();
    let map = tt::MapElementwise::build(&mut Builder::before(module, op), args, 1, &[like]);
    let block = module.append_block(map.scalar_op(module), &scalars);
    let numbers = module.block_args(block).to_vec();
    let loc = module.op_loc(op);
    let mut e = Elements { b: Builder::at(module, InsertPoint::End(block), loc), like: element };
    let made = record(&mut e, &numbers);
    if let Some(made) = made {
        tt::MapElementwiseReturn::build(&mut e.b, &[made]);
        return Some(map.results(module)[0]);
    }
    module.erase_op(map.0);
    None
}

/// Functions of fp32 that are instructions, as those of the core language are, and the fast ones that are made of them.
fn instruction(e: &mut Elements<'_>, name: &str, args: &[Value]) -> Option<Value> {
    let &x = args.first()?;
    if e.word(x) != Word::F32 {
        return None;
    }
    let b = &mut e.b;
    Some(match (name, args) {
        ("exp" | "fast_expf", _) => math::Exp::build(b, x).result(b.module),
        ("exp2", _) => math::Exp2::build(b, x).result(b.module),
        ("fast_cosf", _) => math::Cos::build(b, x).result(b.module),
        ("fast_sinf", _) => math::Sin::build(b, x).result(b.module),
        ("fast_tanf", _) => tangent(e, x),
        ("fast_tanhf", _) => math::Tanh::build(b, x).result(b.module),
        ("fast_logf", _) => math::Log::build(b, x).result(b.module),
        ("fast_log2f", _) => math::Log2::build(b, x).result(b.module),
        ("fast_log10f", _) => {
            let log = math::Log2::build(b, x).result(b.module);
            let scale = e.number(2f64.log10(), Word::F32);
            e.binary(Binary::MulF, log, scale)
        }
        ("fast_exp10f", _) => {
            let scale = e.number(10f64.log2(), Word::F32);
            let power = e.binary(Binary::MulF, x, scale);
            math::Exp2::build(&mut e.b, power).result(e.b.module)
        }
        ("fast_powf", &[x, y]) => {
            let log = math::Log2::build(b, x).result(b.module);
            let power = e.binary(Binary::MulF, log, y);
            math::Exp2::build(&mut e.b, power).result(e.b.module)
        }
        ("fast_dividef", &[x, y]) => arith::Divf::build(b, x, y).result(b.module),
        _ => return None,
    })
}

/// The tangent: the quotient of the sine and the cosine, of which there are instructions.
fn tangent(e: &mut Elements<'_>, x: Value) -> Value {
    let b = &mut e.b;
    let (sin, cos) = (math::Sin::build(b, x).result(b.module), math::Cos::build(b, x).result(b.module));
    arith::Divf::build(b, sin, cos).result(b.module)
}

/// Expands tangents, and remainders, fused multiplications, quotients and roots that are rounded to the nearest, of fp32 or, where that makes no difference, of fewer bits; leaves any other
/// operation, and other types.
pub(super) fn rounded(module: &mut Module, op: Op) {
    let Some(&result) = module.results(op).first() else { return };
    let like = module.value_type(result);
    let element = module.element_type(like);
    let narrow = matches!(element, Type::F16 | Type::BF16);
    if element == Type::F64 || (element == Type::F16 && math::Fma::cast(module, op).is_some()) {
        of_doubles(module, op);
        return;
    }
    let exact =
        matches!(module.opcode(op), Some(Opcode::Arith(arith::Kind::Remf) | Opcode::Math(math::Kind::Tan)));
    let wide = matches!(module.opcode(op), Some(Opcode::Tt(tt::Kind::Mulhiui))) && element == Type::I64;
    if !wide && element != Type::F32 && !(exact && narrow) {
        return;
    }
    let args = module.operands(op).to_vec();
    let (opcode, nearest) = (module.opcode(op), Rounding::Nearest);
    let known = matches!(
        opcode,
        Some(
            Opcode::Arith(arith::Kind::Remf)
                | Opcode::Math(math::Kind::Tan | math::Kind::Fma)
                | Opcode::Tt(tt::Kind::PreciseDivf | tt::Kind::PreciseSqrt | tt::Kind::Mulhiui)
        )
    );
    if !known || (opcode == Some(Opcode::Tt(tt::Kind::Mulhiui)) && !wide) {
        return;
    }
    let mut e = Elements { b: Builder::before(module, op), like };
    let args: Vec<Value> = match narrow {
        true => {
            let single = e.of(of_word(Word::F32));
            args.iter().map(|&v| arith::Extf::build(&mut e.b, v, single).out(e.b.module)).collect()
        }
        false => args,
    };
    let made = if opcode == Some(Opcode::Math(math::Kind::Tan)) {
        Some(tangent(&mut e, args[0]))
    } else {
        one_by_one(module, op, &args, |e, args| {
            Some(match (opcode, args) {
                (Some(Opcode::Arith(arith::Kind::Remf)), &[x, y]) => soft::fmod(e, x, y),
                (Some(Opcode::Math(math::Kind::Fma)), &[x, y, z]) => soft::fma(e, x, y, z, nearest),
                (Some(Opcode::Tt(tt::Kind::PreciseDivf)), &[x, y]) => soft::divide(e, x, y, nearest),
                (Some(Opcode::Tt(tt::Kind::PreciseSqrt)), &[x]) => soft::sqrt(e, x, nearest),
                (Some(Opcode::Tt(tt::Kind::Mulhiui)), &[x, y]) => integers::upper_product(e, x, y, true),
                _ => return None,
            })
        })
    };
    let Some(made) = made else { return };
    let mut e = Elements { b: Builder::before(module, op), like };
    let made = match narrow {
        true => arith::Truncf::build(&mut e.b, made, like).out(e.b.module),
        false => made,
    };
    module.replace_op(op, &[made]);
}

/// Expands tangents, whole numbers and fused multiplications of fp64, and those of fp16, which fp64 holds exactly; leaves any other operation.
fn of_doubles(module: &mut Module, op: Op) {
    let how = match module.opcode(op) {
        Some(Opcode::Math(math::Kind::Tan)) => "tan",
        Some(Opcode::Math(math::Kind::Floor)) => "floor",
        Some(Opcode::Math(math::Kind::Ceil)) => "ceil",
        Some(Opcode::Math(math::Kind::Trunc)) => "trunc",
        Some(Opcode::Math(math::Kind::Round)) => "round",
        Some(Opcode::Math(math::Kind::Fma)) => "fma",
        _ => return,
    };
    let args = module.operands(op).to_vec();
    let made = one_by_one(module, op, &args, |e, args| match (how, args) {
        ("tan", &[x]) => recorded::record(e, of_symbol("__nv_tan")?, &[x]),
        ("fma", &[x, y, z]) if e.word(x) == Word::F64 => Some(soft::fma(e, x, y, z, Rounding::Nearest)),
        ("fma", &[x, y, z]) => {
            let [x, y, z] = [x, y, z].map(|v| e.convert(Convert::Round, v, Word::F64));
            let product = e.binary(Binary::MulF, x, y);
            let sum = e.binary(Binary::AddF, product, z);
            Some(e.convert(Convert::Round, sum, Word::F16))
        }
        (_, &[x]) => Some(recorded::whole(e, how, x)),
        _ => None,
    });
    if let Some(made) = made {
        module.replace_op(op, &[made]);
    }
}
