//! Loads and stores of tensors of pointers as those of blocks of matrices, where the pointers and the mask prove that they are.
//!
//! Why here: a target whose instructions take blocks wants them before layouts are chosen, since a block's place is one of scalars. A
//! descriptor that is made in the kernel costs nothing on such a target.
//!
//! ```text
//! %rows = %first + tt.make_range : tensor<64xi32>                  (of 32 columns: %columns = tt.make_range)
//! %p = tt.addptr (tt.splat %x), %rows[:, None] * %s + %columns[None, :]
//! scf.for %k = 0 to %K step 32 iter_args(%q = %p) {
//!   %a = tt.load %q, (%rows < %M)[:, None] & (%columns < %K - %k)[None, :], 0.0
//!   scf.yield (tt.addptr %q, 32)
//! }
//! =>
//! %d = tt.make_tensor_descriptor %x, [max(%M, 0), max(%K, 0)], [%s, 1] : <f16>, <tensor<64x32xf16>>
//! scf.for %k = 0 to %K step 32 {
//!   %a = tt.descriptor_load %d[%first, %k]
//! }
//! ```
//!
//! # What must hold
//!
//! - Pointers are a base and a sum of scalars and strides times indices ([`affine`](crate::analysis::affine)); block pointers are, too,
//!   once the front end has taken them apart. One stride is the number 1. The other, and where the matrix begins, are known to be
//!   multiples of 16 bytes, by what a kernel's arguments are specialized for.
//! - The mask bounds each index by itself ([`prefix`](crate::analysis::affine::prefix)), and what it leaves out is 0. Then
//!   `i + index < extent` is what the descriptor checks. An index that may be negative, where the mask does not say otherwise, is that of
//!   a matrix that begins there; along a dimension without a bound the matrix ends where the block does, so that nothing is masked.
//! - Rows by a remainder, `(first + i) % M`, are rows of a matrix with that many where nothing depends on the others: what is made of them is
//!   stored under a mask that leaves them out (`wrap`). A remainder keeps indices in a matrix: of negative ones it would not, and there are none.
//! - What a program computes in 32 bits for an address or a mask does not overflow where memory is accessed (`docs/numerics.md`); numbers that
//!   this pass makes are computed in 64 bits unless they are known to fit.
//!
//! # Where TMA copies blocks
//!
//! There a block wants a tensor map, which costs a program that makes it more than it brings. So only operands of products of warp groups in loops are raised, of
//! matrices that depend on the kernel's arguments alone: their maps are made by the launch (`lower-tma`). Where a matrix begins at so many times a stride, as
//! those of a batch do, that is the index of one more dimension; of what is not masked the map says that there is more than memory can have. Where programs wait for others, of which they
//! load what these have stored, loads stay with threads, whose order with stores no proxy fence has to make. Such loads go by the copy engine, whoever
//! wrote them as pointers.
//!
//! Loops of attention whose loads were raised may get a warp that loads (`specialize`). What their first products take from outside, the queries, is raised with them:
//! threads would bring it through registers, behind a fence and a barrier, and to a warp that loads ahead for the next program they could not leave it.
//!
//! What a warp group stores of a product behind its loop goes by TMA, too: another program on the multiprocessor multiplies meanwhile (`by_launch::stores_product`). That a
//! tile begins in the matrix is seldom proved, and a copy to memory must (an H100 takes a negative coordinate for an illegal instruction):
//!
//! ```text
//! tt.store %p, %x, %mask
//! =>
//! scf.if %row < M and %column < N, as unsigned numbers {
//!   tt.descriptor_store %d[%row, %column], %x
//! } else {
//!   tt.store %p, %x, %mask                          (what computes %p and %mask alone stands here, too)
//! }
//! ```
//!
//! What the hardware wants of a matrix beyond that, rows of 64 bytes or more that don't overlap, it wants of every descriptor that a kernel makes, and is
//! a matter of the numbers of a launch: the code generator decides by them. Accesses that stay as they are have a remark that says why.

mod by_launch;
mod emit;
mod plan;
mod specialize;
mod wrap;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::tt;
use tilewright_ir::{Diagnostic, Module, Op, Options, Type, Value, cse, launch, pass};

use crate::analysis::affine::{Affine, Poly};
use crate::analysis::axis::{AxisAnalysis, pointer_of};
use crate::analysis::intervals::Intervals;
use crate::analysis::promises::Promises;
use crate::branches;
use crate::pass::Pass;
use crate::remarks;
use crate::target::{MatrixLimit, TargetInfo};
use emit::{Emitter, Numbers};
use plan::{Extent, Known, Plan, Why};

/// The pass.
pub const PASS: Pass = Pass {
    name: "raise-to-descriptors",
    summary: "turn accesses through pointers into those of blocks of matrices",
    requires: &[],
    ensures: &[],
    run: |m, t, o| if o.raise_pointers { run(m, t, o) } else { Ok(()) },
};

/// Raises what it can of a module's accesses of two dimensions, if the target has instructions for blocks.
///
/// # Errors
/// None of its own: what can't be raised stays.
pub fn run(module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
    let num_warps = options.num_warps;
    if launch::warps_of_program(module).is_some() {
        return Ok(());
    }
    let (mut changed, mut loads, mut stores) = (false, false, false);
    match target.warp_units {
        Some(units) => {
            let ops = module.all_ops(module.root());
            for (op, plan) in plans(module, &ops, units.matrix, |_, plan| plan) {
                changed = true;
                match plan {
                    Ok((plan, numbers)) => Emitter::new(module, op, numbers).replace(&plan),
                    Err(why) => {
                        remarks::add(module, op, &format!("{} lane by lane: {why}", what(module, op)))
                    }
                }
            }
        }
        None if target.tma && target.dots.wgmma && by_launch::may_pay(module) => {
            let ops = module.all_ops(module.root());
            for (op, plan) in plans(module, &ops, TMA, by_launch::of_batches) {
                let Ok((plan, numbers)) = plan else { continue };
                if by_launch::feeds_dot(module, &plan, num_warps) {
                    (changed, loads) = (true, true);
                    Emitter::new(module, op, numbers).replace(&plan);
                } else if by_launch::stores_product(module, &plan, num_warps) {
                    (changed, stores) = (true, true);
                    Emitter::new(module, op, numbers).store_where_inside(&plan);
                }
            }
        }
        None => {}
    }
    if changed {
        pass::optimize(module)?;
        // Of what left several loops, descriptors among it, one stands for all.
        cse::run(module)?;
    }
    if loads && specialize::ask(module, target, num_warps) {
        raise_queries(module, options)?;
    }
    if stores {
        // Threads store seldom where TMA can: what they need for it is computed only then. (Maps are the launch's.)
        let mut ops = module.all_ops(module.root());
        ops.retain(|&op| tt::MakeTensorDescriptor::cast(module, op).is_none());
        branches::sink(module, &ops);
    }
    Ok(())
}

/// Raises what loops of attention multiply by the blocks that they load, their queries: copied by TMA they cross no registers, and no barrier keeps warp groups in step.
fn raise_queries(module: &mut Module, options: &Options) -> Result<(), Diagnostic> {
    let queries = specialize::queries(module, options.persistent);
    let mut changed = false;
    for (op, plan) in plans(module, &queries, TMA, by_launch::of_batches) {
        if let Ok((plan, numbers)) = plan
            && by_launch::is_operand_of_dots(module, &plan, options.num_warps)
        {
            changed = true;
            Emitter::new(module, op, numbers).replace(&plan);
        }
    }
    if changed { pass::optimize(module) } else { Ok(()) }
}

/// What TMA wants of a matrix (CUDA driver API, `cuTensorMapEncodeTiled`), and of where a block begins.
const TMA: MatrixLimit = MatrixLimit { alignment: 16, word: 16, row_bytes: 16 };

fn what(m: &Module, op: Op) -> &'static str {
    match m.results(op).is_empty() {
        true => "this block is stored",
        false => "this block is loaded",
    }
}

type Found = Vec<(Op, Result<(Plan, Numbers), Why>)>;

/// The plans of the accesses among `ops`, made before the first changes, each as `change` has it.
fn plans(m: &Module, ops: &[Op], limit: MatrixLimit, change: impl Fn(&Known<'_>, Plan) -> Plan) -> Found {
    let affine = Affine::new(m);
    let known = Known {
        m,
        affine: &affine,
        intervals: Intervals::new(m, &affine, &Promises::of(m)),
        axis: AxisAnalysis::run(m),
        limit,
    };
    let computed = computed(m, &affine, &m.all_ops(m.root()));
    let two = |v: Value| m.shape(m.value_type(v)).is_some_and(|shape| shape.len() == 2);
    let blocks = ops.iter().filter(|&&op| pointer_of(m, op).is_some_and(|(pointers, _)| two(pointers)));
    let plan = |&op: &Op| {
        let plan = change(&known, known.plan(op)?);
        let numbers = numbers(&known, &computed, &plan);
        Ok((plan, numbers))
    };
    blocks.map(|op| (*op, plan(op))).collect()
}

/// The scalars of 32 bits that a module computes, by what they are.
fn computed(m: &Module, affine: &Affine<'_>, ops: &[Op]) -> FxHashMap<Poly, Vec<Value>> {
    let mut all: FxHashMap<Poly, Vec<Value>> = FxHashMap::default();
    for &op in ops {
        let blocks = m.regions(op).iter().flat_map(|&r| m.region_blocks(r));
        let arguments = blocks.flat_map(|&b| m.block_args(b));
        for &value in arguments.chain(m.results(op)).filter(|&&v| m.value_type(v) == Type::I32) {
            all.entry(affine.scalar(value)).or_default().push(value);
        }
    }
    all
}

/// How the numbers of a plan come about.
fn numbers(known: &Known<'_>, computed: &FxHashMap<Poly, Vec<Value>>, plan: &Plan) -> Numbers {
    let mut noted = Vec::new();
    for dim in &plan.dims {
        let bounds: &[Poly] = match &dim.extent {
            Extent::Bounded(bounds) => bounds,
            Extent::Any | Extent::Reached { .. } => &[],
        };
        noted.extend(bounds.iter().chain([&dim.index]));
    }
    noted.extend(plan.batches.iter().map(|batch| &batch.index));
    let mut numbers = Numbers::default();
    for poly in noted {
        let before = |v: &&Value| is_before(known.m, **v, plan.op);
        let value = computed.get(poly).and_then(|values| values.iter().find(before));
        numbers.note(poly, value.copied(), known.intervals.of(poly));
    }
    numbers
}

/// Whether a value is there where an operation runs.
fn is_before(m: &Module, value: Value, op: Op) -> bool {
    let Some(block) = m.value_block(value) else { return false };
    let Some(here) = m.ancestor_in_block(block, op) else { return false };
    m.defining_op(value).is_none_or(|def| def != here && m.is_before(def, here))
}
