//! Makes the descriptors that a kernel is given, where the hardware knows none.
//!
//! Why first: what is behind it knows one kind of descriptor, those that kernels make. Such a descriptor is numbers in registers, and costs nothing.
//!
//! ```text
//! tt.func @f(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64)
//! =>
//! tt.func @f(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32, %n: i32, %s: i64, %one: i64)
//!   %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, 1] : <f16>, <tensor<16x32xf16>>
//! ```

use tilewright_ir::dialect::tt;
use tilewright_ir::{AttrKind, Block, Builder, Diagnostic, Module, Op, Type, TypeKind, Value, launch, marks};

use crate::pass::Pass;

/// The pass.
pub const PASS: Pass = Pass {
    name: "receive-descriptors",
    summary: "make the descriptors that a kernel is given",
    requires: &[],
    ensures: &[],
    run: |m, _, _| run(m),
};

/// Makes the descriptors that the kernel of a module is given.
///
/// # Errors
/// A descriptor without its extents and strides.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for op in functions {
        let Some(func) = tt::Func::cast(module, op) else { continue };
        let Some(&entry) = module.region_blocks(func.body(module)).first() else { continue };
        if !launch::is_kernel(module, func.0) {
            continue;
        }
        for (at, arg) in module.block_args(entry).to_vec().into_iter().enumerate() {
            let ty = module.value_type(arg);
            if !matches!(module.type_kind(ty), TypeKind::TensorDesc { .. }) {
                continue;
            }
            let users = module.uses(arg).to_vec();
            let given = Given::take(module, func, entry, at)?;
            let Some(first) = module.first_op(entry) else { continue };
            let mut b = Builder::before(module, first);
            let one = b.int(1, Type::I64);
            let strides: Vec<Value> = given.strides.iter().copied().chain([one]).collect();
            let padding = given.nan.then_some(2);
            let made = tt::MakeTensorDescriptor::build(&mut b, arg, &given.shape, &strides, padding, ty);
            let made = made.result(module);
            for user in users {
                module.set_operand(user.op, user.index as usize, made);
            }
        }
        note_inputs(module, func, entry);
    }
    Ok(())
}

/// What a function is given for a descriptor, whose place the pointer to the matrix takes.
pub(super) struct Given {
    /// `i32`.
    pub shape: Vec<Value>,
    /// `i64`, without the last, which is 1.
    pub strides: Vec<Value>,
    /// Whether it pads with NaN; known of kernels.
    pub nan: bool,
}

impl Given {
    /// Lets the pointer take the place of a descriptor among a function's arguments.
    ///
    /// # Errors
    /// Extents and strides that do not follow it.
    pub fn take(m: &mut Module, func: tt::Func, entry: Block, at: usize) -> Result<Given, Diagnostic> {
        let args = m.block_args(entry).to_vec();
        let TypeKind::TensorDesc { block } = *m.type_kind(m.value_type(args[at])) else {
            let text = format!("internal: argument {at} is no tensor descriptor");
            return Err(Diagnostic::at(m, m.op_loc(func.0), text));
        };
        let rank = m.shape(block).map_or(0, <[u32]>::len);
        let rest = args.get(at + 1..at + 1 + 2 * rank).unwrap_or(&[]);
        let ty = |i: usize| if i < rank { Type::I32 } else { Type::I64 };
        if rest.len() != 2 * rank || rest.iter().enumerate().any(|(i, &v)| m.value_type(v) != ty(i)) {
            let text = format!(
                "argument {at} is a tensor descriptor, but its extents (i32) and strides (i64) do not follow"
            );
            return Err(Diagnostic::at(m, m.op_loc(func.0), text));
        }
        let (shape, strides) = (rest[..rank].to_vec(), rest[rank..2 * rank - 1].to_vec());
        let pointer = m.ptr_type(m.element_type(block));
        m.set_value_type(args[at], pointer);
        let nan = launch::is_kernel(m, func.0) && promise_alignment(m, func.0, at, args.len());
        Ok(Given { shape, strides, nan })
    }
}

/// The base of a kernel's descriptor is a multiple of 16 bytes. Says whether it pads with NaN.
fn promise_alignment(m: &mut Module, func: Op, at: usize, count: usize) -> bool {
    let mut dicts = match m.op_attr(func, "arg_attrs").map(|a| m.attr_kind(a).clone()) {
        Some(AttrKind::Array(dicts)) => dicts,
        _ => vec![m.attr(AttrKind::Dict(Vec::new())); count],
    };
    let mut entries = match m.attr_kind(dicts[at]).clone() {
        AttrKind::Dict(entries) => entries,
        _ => Vec::new(),
    };
    let padding = entries.iter().position(|(name, _)| *name == "tt.padding");
    let padding = padding.map(|i| entries.remove(i).1);
    let nan = padding.is_some_and(|a| matches!(m.attr_kind(a), AttrKind::Int(2, _)));
    entries.push((marks::DIVISIBILITY.into(), m.attr(AttrKind::Int(16, Type::I32))));
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    dicts[at] = m.attr(AttrKind::Dict(entries));
    let dicts = m.attr(AttrKind::Array(dicts));
    m.set_attr(func, "arg_attrs", dicts);
    nan
}

/// A function's type says what its arguments have become.
pub(super) fn note_inputs(m: &mut Module, func: tt::Func, entry: Block) {
    let inputs: Vec<Type> = m.block_args(entry).iter().map(|&v| m.value_type(v)).collect();
    if let TypeKind::Function { results, .. } = m.type_kind(func.function_type(m)).clone() {
        let ty = m.ty(TypeKind::Function { inputs, results });
        let attr = m.attr(AttrKind::Type(ty));
        m.set_attr(func.0, "function_type", attr);
    }
}
