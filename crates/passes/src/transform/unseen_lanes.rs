//! Masked loads of which nobody sees what stands where their mask does not hold.
//!
//! A load gives zero there, and kernels rely on it. Most of what is loaded, though, is computed with element by element and stored under the
//! same mask: then registers need no zeros before the load, nor a selection behind it, and the loads of a thread stand at its beginning,
//! one behind the other. `swiglu` of 16 elements a thread had its last load behind 158 instructions, and has it behind 66.
//!
//! The assembler begins such a load at once, and holds back one whose registers get zeros before it. So what waits for other threads before it is
//! used keeps them: a row's weights would take registers while its sum is formed (`rms_norm` of 16 elements a thread had 37 for 32).
//!
//! Why here: masks are as the lowering finds them, and whatever makes something else of what is loaded has run.
//!
//! ```text
//! %x = tt.load %p, %mask                      %x = tt.load %p, %mask {tt.unseen}
//! %y = math.exp %x                     =>     %y = math.exp %x
//! tt.store %q, %y, %mask                      tt.store %q, %y, %mask
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{arith, math, tt, ttg};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{AttrKind, Module, Op, Opcode, Trait, Value, marks};

use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "unseen-lanes",
    summary: "mark loads of which nobody sees what stands where their mask does not hold",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Marks them.
pub fn run(module: &mut Module) {
    for op in module.all_ops(module.root()) {
        if tt::Load::cast(module, op).is_some_and(|load| is_unseen(module, load)) {
            let mark = module.attr(AttrKind::Unit);
            module.set_attr(op, marks::UNSEEN, mark);
        }
    }
}

/// Whether all that is computed of a load's result goes, element by element, to stores under its mask.
fn is_unseen(m: &Module, load: tt::Load) -> bool {
    let result = load.result(m);
    let Some(mask) = load.mask(m).filter(|_| m.is_tensor(m.value_type(result))) else { return false };
    let mut open = vec![result];
    let mut known: FxHashSet<Value> = open.iter().copied().collect();
    while let Some(value) = open.pop() {
        for used in m.uses(value) {
            let stored = tt::Store::cast(m, used.op).is_some_and(|store| {
                let masked = store.mask(m).is_some_and(|by| implies(m, by, mask));
                masked && store.ptr(m) != value && is_soon(m, load.0, used.op)
            });
            if !stored && !takes_any_number(m, used.op) {
                return false;
            }
            open.extend(m.results(used.op).iter().copied().filter(|&result| known.insert(result)));
        }
    }
    true
}

/// Whether nothing but arithmetic and accesses of memory stands between two operations of a block.
fn is_soon(m: &Module, load: Op, store: Op) -> bool {
    let between = std::iter::successors(m.next_op(load), |&op| m.next_op(op));
    let goes_on = |&op: &Op| match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Load | tt::Kind::Store)) => true,
        Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => false,
        _ => is_pure(m, op) && m.regions(op).is_empty(),
    };
    m.parent_block(load) == m.parent_block(store)
        && between.take_while(|&op| op != store).all(|op| goes_on(&op))
}

/// Whether one mask holds nowhere but where another does: it is that one, or that one and something else.
fn implies(m: &Module, mask: Value, other: Value) -> bool {
    let both = || m.defining_op(mask).filter(|&op| m.opcode(op) == Some(Opcode::Arith(arith::Kind::Andi)));
    mask == other || both().is_some_and(|op| m.operands(op).iter().any(|&part| implies(m, part, other)))
}

/// Whether each element of an operation's result follows from those at the same place alone, without a branch that an element decides.
fn takes_any_number(m: &Module, op: Op) -> bool {
    let mut elements = m.operands(op).iter().chain(m.results(op)).map(|&v| m.element_type(m.value_type(v)));
    // Floats of 8 bits are converted two by two.
    if elements.clone().any(|ty| m.is_float(ty) && m.bits(ty) == 8) {
        return false;
    }
    let plain = match m.opcode(op) {
        Some(Opcode::Arith(kind)) => kind != arith::Kind::Remf,
        // Functions of 64 bits are a library's, which have branches.
        Some(Opcode::Math(kind)) => {
            use math::Kind::{Absf, Exp, Exp2, Fma, Rsqrt, Sqrt};
            matches!(kind, Absf | Exp | Exp2 | Fma | Rsqrt | Sqrt) && elements.all(|ty| m.bits(ty) <= 32)
        }
        Some(Opcode::Tt(tt::Kind::FpToFp | tt::Kind::Clampf)) => true,
        _ => false,
    };
    plain && m.has_trait(op, Trait::Elementwise) && m.has_trait(op, Trait::Pure)
}
