//! Pointers of another type, to elements of as many bits, are what they were: what is loaded and stored is read as that type.
//!
//! ```text
//! %q = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i32>      =>      %0 = tt.load %p : !tt.ptr<f32>
//! %x = tt.load %q : !tt.ptr<i32>                                 %x = arith.bitcast %0 : f32 to i32
//! ```
//!
//! Atomic operations are left with values of the other type, and are done by the scalar unit.

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Module, Op, Opcode, Type, TypeKind, Value};

/// Takes such conversions away where everything that uses them is known.
pub(super) fn run(module: &mut Module) {
    let root = module.root();
    for op in module.all_ops(root) {
        let Some(Opcode::Tt(tt::Kind::Bitcast)) = module.opcode(op) else { continue };
        let (src, result) = (module.operands(op)[0], module.result(op));
        let (Some(from), Some(to)) = (pointee(module, src), pointee(module, result)) else { continue };
        // (Truth values are bytes in memory.)
        let known = module.bits(from) == module.bits(to) && from != to && ![from, to].contains(&Type::I1);
        if known && is_followed(module, result) {
            follow(module, result, from);
            module.replace_op(op, &[src]);
        }
    }
}

fn pointee(m: &Module, v: Value) -> Option<Type> {
    m.pointee_type(m.element_type(m.value_type(v)))
}

/// Whether an operation gives the same pointers in another order or place.
fn leads_on(m: &Module, op: Op) -> bool {
    use tt::Kind as T;
    let kind = m.opcode(op);
    matches!(
        kind,
        Some(Opcode::Tt(T::Addptr | T::Splat | T::Broadcast | T::ExpandDims | T::Reshape | T::Trans))
    )
}

/// Whether everything that uses pointers is known.
fn is_followed(m: &Module, pointers: Value) -> bool {
    use tt::Kind as T;
    m.uses(pointers).iter().all(|used| match m.opcode(used.op) {
        Some(Opcode::Tt(T::Load | T::Store | T::AtomicRmw | T::AtomicCas)) => used.index == 0,
        Some(Opcode::Tt(T::Bitcast)) => true,
        _ => leads_on(m, used.op) && is_followed(m, m.result(used.op)),
    })
}

/// Has what uses pointers take those of another type, of which the values that there were are read.
fn follow(module: &mut Module, pointers: Value, from: Type) {
    for op in module.uses(pointers).iter().map(|used| used.op).collect::<Vec<_>>() {
        if leads_on(module, op) {
            let result = module.result(op);
            let ty = module.value_type(result);
            let mut pointer = module.type_kind(module.element_type(ty)).clone();
            if let TypeKind::Ptr { pointee, .. } = &mut pointer {
                *pointee = from;
            }
            let pointer = module.ty(pointer);
            let ty = module.with_element(ty, pointer);
            module.set_value_type(result, ty);
            follow(module, result, from);
        } else if let Some(load) = tt::Load::cast(module, op) {
            if let Some(other) = load.other(module) {
                let place = module.operands(op).iter().position(|&v| v == other).unwrap_or(0);
                read_as(module, op, place, from);
            }
            let result = load.result(module);
            let ty = module.value_type(result);
            let own = module.with_element(ty, from);
            module.set_value_type(result, own);
            let mut b = Builder::after(module, op);
            let read = arith::Bitcast::build(&mut b, result, ty);
            let value = read.out(module);
            module.replace_all_uses(result, value);
            module.set_operand(read.0, 0, result);
        } else if tt::Store::cast(module, op).is_some() {
            read_as(module, op, 1, from);
        }
    }
}

/// An operand's bits as another type.
fn read_as(module: &mut Module, op: Op, place: usize, element: Type) {
    let value = module.operands(op)[place];
    let ty = module.value_type(value);
    let ty = module.with_element(ty, element);
    let read = arith::Bitcast::build(&mut Builder::before(module, op), value, ty).out(module);
    module.set_operand(op, place, read);
}
