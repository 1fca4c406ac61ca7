//! Unrolling of loops that ask for it (`tl.range(loop_unroll_factor=…)`): several iterations become one, and those that are left over
//! run in a loop behind it, which is not pipelined.
//!
//! Why early: what it makes is code like any other to all passes behind, which schedule the longer iteration as a whole.
//!
//! ```text
//! scf.for %i = %lb to %ub step %s {              %mid = %lb + (n - n % 2) * %s    (n iterations; %ub where none is left)
//!   body(%i)                                     scf.for %i = %lb to %mid step %s * 2 {
//! } {tt.loop_unroll_factor = 2}             =>     body(%i)  body(%i + %s)
//!                                                }
//!                                                scf.for %i = %mid to %ub step %s { body(%i) } {tt.num_stages = 1}
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{Builder, Diagnostic, Module, Type, Value, pass};

use crate::hopper::warp_specialize::{FLATTEN, HINT};
use crate::pass::Pass;

/// The pass.
pub const PASS: Pass = Pass {
    name: "unroll-loops",
    summary: "unroll loops that ask for it",
    requires: &[],
    ensures: &[],
    run: |m, _, _| run(m),
};

/// The hint.
const FACTOR: &str = "tt.loop_unroll_factor";
const NUM_STAGES: &str = "tt.num_stages";

/// Unrolls loops, inner ones first.
///
/// # Errors
/// None of its own.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let mut loops: Vec<scf::For> =
        module.all_ops(module.root()).into_iter().filter_map(|op| scf::For::cast(module, op)).collect();
    loops.reverse();
    let mut changed = false;
    for f in loops {
        let Some(factor) = module.int_attr(f.0, FACTOR) else { continue };
        module.remove_attr(f.0, FACTOR);
        if factor > 1 {
            unroll(module, f, factor);
            changed = true;
        }
    }
    if changed { pass::optimize(module) } else { Ok(()) }
}

fn unroll(module: &mut Module, f: scf::For, factor: i64) {
    let (lower, upper, step) = (f.lower_bound(module), f.upper_bound(module), f.step(module));
    let ty = module.value_type(lower);
    let mut b = Builder::before(module, f.0);
    let rounds = iterations(&mut b, [lower, upper, step]);
    let by = b.int(factor, ty);
    let left = arith::Remui::build(&mut b, rounds, by).result(b.module);
    let whole = arith::Subi::build(&mut b, rounds, left).result(b.module);
    // Steps that are too long together stay apart.
    let zero = b.int(0, ty);
    let longest = b.int(greatest(b.module, ty) / factor, ty);
    let fits =
        arith::Cmpi::build(&mut b, step, longest, arith::CmpIPredicate::Sle, Type::I1).result(b.module);
    let whole = arith::Select::build(&mut b, fits, whole, zero).result(b.module);
    let covered = arith::Muli::build(&mut b, whole, step).result(b.module);
    let mid = arith::Addi::build(&mut b, lower, covered).result(b.module);
    // The first number that is left; where none is, it may be one beyond all of the type.
    let none = arith::Cmpi::build(&mut b, whole, rounds, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    let mid = arith::Select::build(&mut b, none, upper, mid).result(b.module);
    let wide = arith::Muli::build(&mut b, step, by).result(b.module);

    let init = f.init(b.module).to_vec();
    let types: Vec<Type> = init.iter().map(|&v| b.module.value_type(v)).collect();
    let main = scf::For::build(&mut b, lower, mid, wide, &init, &types);
    for (name, value) in module.op_attrs(f.0).to_vec() {
        module.set_attr(main.0, name, value);
    }
    let old = module.region_block(f.body(module));
    let body = {
        let region = main.body(module);
        let with_iv: Vec<Type> = std::iter::once(ty).chain(types).collect();
        module.append_block(region, &with_iv)
    };
    let args = module.block_args(body).to_vec();
    let mut carried = args[1..].to_vec();
    let ops: Vec<_> = module.block_ops(old).collect();
    let (&last, inside) = ops.split_last().expect("a loop ends in a yield");
    for k in 0..factor {
        let mut b = Builder::at_end(module, body);
        let ahead = b.int(k, ty);
        let ahead = arith::Muli::build(&mut b, ahead, step).result(b.module);
        let iv = arith::Addi::build(&mut b, args[0], ahead).result(b.module);
        let given = std::iter::once(iv).chain(carried);
        let mut map: FxHashMap<Value, Value> = module.block_args(old).iter().copied().zip(given).collect();
        for &op in inside {
            let clone = module.clone_op(op, &mut map);
            module.append_op(body, clone);
        }
        carried = module.operands(last).iter().map(|v| *map.get(v).unwrap_or(v)).collect();
    }
    scf::Yield::build(&mut Builder::at_end(module, body), &carried);

    // The old loop does the rest.
    let results = main.results(module).to_vec();
    module.set_operand_group(f.0, 0, &[mid]);
    module.set_operand_group(f.0, 3, &results);
    for hint in [HINT, FLATTEN] {
        module.remove_attr(f.0, hint);
    }
    module.set_i32_attr(f.0, NUM_STAGES, 1);
}

/// How often a loop runs, an unsigned number: (upper - lower) / step, rounded up, and 0 where that is less.
fn iterations(b: &mut Builder<'_>, [lower, upper, step]: [Value; 3]) -> Value {
    let upper = arith::Maxsi::build(b, upper, lower).result(b.module);
    let length = arith::Subi::build(b, upper, lower).result(b.module);
    arith::Ceildivui::build(b, length, step).result(b.module)
}

/// The greatest number of a type.
fn greatest(m: &Module, ty: Type) -> i64 {
    i64::MAX >> (64 - m.bits(ty).clamp(1, 64))
}
