//! Products computed as their transposes, (a b)ᵀ = bᵀ aᵀ, where the tensor cores read less for them.
//!
//! A `wgmma` instruction computes 64 rows by up to 256 columns and reads both operands from shared memory. A product of 256
//! by 128 takes four for each 16 of K, of 64 + 128 rows of operands; its transpose two, of 64 + 256. What is read grows
//! with the number of instructions, and shared memory is what products of large tiles come close to using up.
//!
//! Why here: before layouts, which then are those of a product like any other. The transposes of operands are views of
//! shared memory, and that of the result renames registers; it is on its way through shared memory to be stored anyway.
//!
//! ```text
//! %r = scf.for ... iter_args(%c = %zero : tensor<256x128xf32>) {
//!   %d = tt.dot %a, %b, %c
//! }
//! tt.store %p, %r
//! =>
//! %t = scf.for ... iter_args(%c = %zero : tensor<128x256xf32>) {
//!   %bt = tt.trans %b ; %at = tt.trans %a
//!   %d = tt.dot %bt, %at, %c
//! }
//! %r = tt.trans %t
//! tt.store %p, %r
//! ```
//!
//! It is done where instructions become as wide as they can be (others have not been measured), for a dot of 16-bit operands, both
//! loaded in the same iteration, whose result a loop only adds up from a constant, and which goes into memory after no more
//! than elementwise arithmetic: its rows lie across warps then. A dot whose author says how warps divide it stays as it is.

use tilewright_ir::dialect::{arith, scf, tt};
use tilewright_ir::{AttrKind, Builder, Module, Trait, Type, Value};

use crate::analysis::scope;
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;
use crate::transform::assign_layouts::warp_group_shape;

/// The pass.
pub const PASS: Pass = Pass {
    name: "transpose-dots",
    summary: "compute products as their transposes where tensor cores read less for them",
    requires: &[Property::DotsSplit],
    ensures: &[],
    run: |m, t, o| {
        run(m, t, o.num_warps);
        Ok(())
    },
};

/// Rewrites every dot of the module that gains by it.
pub fn run(module: &mut Module, target: &TargetInfo, num_warps: u32) {
    if !target.dots.wgmma {
        return;
    }
    for op in module.all_ops(module.root()) {
        if let Some(dot) = tt::Dot::cast(module, op)
            && let Some(sum) = Sum::of(module, dot, scope::num_warps_of(module, op, num_warps))
        {
            transpose(module, dot, &sum);
        }
    }
}

/// The most columns of an instruction (PTX ISA, "wgmma.mma_async").
const WIDEST: u32 = 256;

/// Columns of an instruction that computes `m` by `n` results.
fn columns(m: u32, n: u32, num_warps: u32) -> Option<u32> {
    warp_group_shape(m, n, num_warps, false).map(|[_, _, columns]| columns)
}

/// A value that a loop carries to add a dot's products up.
struct Sum {
    l: scf::For,
    index: usize,
    arg: Value,
}

impl Sum {
    fn of(module: &Module, dot: tt::Dot, num_warps: u32) -> Option<Sum> {
        let (a, b, d) = (dot.a(module), dot.b(module), dot.result(module));
        let &[m, _] = module.shape(module.value_type(a))? else { return None };
        let &[_, n] = module.shape(module.value_type(b))? else { return None };
        let narrow = [a, b].iter().all(|&v| module.bits(module.value_type(v)) == 16);
        let loaded =
            |v: Value| tt::Load::of(module, v).is_some() || tt::DescriptorLoad::of(module, v).is_some();
        // Rows and columns are the author's to divide, where a hint does.
        if !narrow
            || dot.tiling(module) != tt::Tiling::Default
            || ![a, b].into_iter().all(loaded)
            || columns(m, n, num_warps)? == WIDEST
            || columns(n, m, num_warps)? < WIDEST
        {
            return None;
        }
        let block = module.parent_block(dot.0)?;
        let l = scf::For::cast(module, module.block_parent_op(block)?)?;
        let arg = dot.c(module);
        let index = module.block_args(block).iter().skip(1).position(|&v| v == arg)?;
        let end = module.last_op(block)?;
        let only = |v: Value| module.uses(v).len() == 1;
        let constant = module.constant_value(l.init(module)[index])?;
        let sums = module.operands(end)[index] == d && only(d) && only(arg);
        let stored = is_stored(module, module.results(l.0)[index]);
        (sums && stored && matches!(module.attr_kind(constant), AttrKind::Splat(..))).then_some(Sum {
            l,
            index,
            arg,
        })
    }
}

/// Whether a value, or what elementwise arithmetic makes of it, is only stored.
fn is_stored(module: &Module, value: Value) -> bool {
    module.uses(value).iter().all(|u| {
        let stores =
            tt::Store::cast(module, u.op).is_some() || tt::DescriptorStore::cast(module, u.op).is_some();
        let elementwise = module.has_trait(u.op, Trait::Elementwise);
        stores || (elementwise && module.results(u.op).iter().all(|&r| is_stored(module, r)))
    })
}

fn transpose(module: &mut Module, dot: tt::Dot, sum: &Sum) {
    let &Sum { l, index, arg } = sum;
    let loc = module.op_loc(dot.0);
    let turned = |m: &mut Module, ty: Type| {
        let shape: Vec<u32> = m.shape(ty).unwrap_or(&[]).iter().rev().copied().collect();
        m.tensor_type(&shape, m.element_type(ty), None)
    };
    let ty = module.value_type(arg);
    let sum_ty = turned(module, ty);

    // The sum begins at the same constant, and is turned behind the loop.
    let init = l.init(module)[index];
    let zero = module.constant_value(init).map(|c| module.attr_kind(c).clone());
    if let Some(AttrKind::Splat(element, _)) = zero {
        let splat = module.attr(AttrKind::Splat(element, sum_ty));
        let mut b = Builder::before(module, l.0);
        let init = arith::Constant::build(&mut b, splat, sum_ty).result(b.module);
        module.set_operand(l.0, 3 + index, init);
    }
    let result = module.results(l.0)[index];
    module.set_value_type(arg, sum_ty);
    module.set_value_type(result, sum_ty);
    let mut b = Builder::after(module, l.0);
    b.set_loc(loc);
    let back = tt::Trans::build(&mut b, result, vec![1, 0], ty);
    for u in module.uses(result).to_vec() {
        if u.op != back.0 {
            module.set_operand(u.op, u.index as usize, back.result(module));
        }
    }

    let mut operands = Vec::new();
    for v in [dot.b(module), dot.a(module)] {
        let ty = module.value_type(v);
        let ty = turned(module, ty);
        let mut b = Builder::before(module, dot.0);
        b.set_loc(loc);
        operands.push(tt::Trans::build(&mut b, v, vec![1, 0], ty).result(b.module));
    }
    let (precision, imprecise) = (dot.input_precision(module), dot.max_num_imprecise_acc(module));
    let mut b = Builder::before(module, dot.0);
    b.set_loc(loc);
    let product =
        tt::Dot::build(&mut b, operands[0], operands[1], arg, precision, imprecise, tt::Tiling::Default)
            .result(b.module);
    module.replace_op(dot.0, &[product]);
}
