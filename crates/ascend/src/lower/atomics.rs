//! Atomic operations whose old values are wanted, or that no engine has: under a lock, element by element.
//!
//! An engine adds to memory, and takes the larger or the smaller, without saying what lay there. A kernel that wants to know does all of its atomic operations one program after
//! the other: from the first to the last of them it has a lock, which programs get in the order of their numbers.
//!
//! ```text
//!                                              %l = hivm.hir.create_sync_block_lock ; hivm.hir.sync_block_lock lock_var(%l)
//! %o = tt.atomic_rmw add, %p, %v          =>   scf.for %k … { %o = memref.load %p[…] ; %n = arith.addi %o, %v[%k] ; memref.store %n, %p[…] ; memref.store %o, %b[%k] }
//!                                              hivm.hir.pipe_barrier[<PIPE_ALL>] ; hivm.hir.sync_block_unlock lock_var(%l)
//! ```

use tilewright_ir::dialect::hivm::{self, AtomicKind, Pipe};
use tilewright_ir::dialect::{arith, hivm_more, memref, tt};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, Module, Op, Opcode, Type, Value, ascend};

use super::effects::space;
use super::scalar::{Scattered, buffer_of};
use super::unsupported;
use super::vectors::{Lower, Result};

/// How an engine does an atomic operation, if one does.
pub(super) fn engine(atomic: tt::RmwOp) -> Option<AtomicKind> {
    match atomic {
        tt::RmwOp::Add | tt::RmwOp::Fadd => Some(AtomicKind::Add),
        tt::RmwOp::Max => Some(AtomicKind::Max),
        tt::RmwOp::Min => Some(AtomicKind::Min),
        _ => None,
    }
}

/// The first and the last operation of a function, or what is around them, that its programs do one after the other: all atomic ones, where any of them is none of an engine's.
pub(super) fn locked(m: &Module, func: tt::Func) -> Option<(Op, Op)> {
    let (mut first, mut last, mut needed) = (None, None, false);
    let entry = *m.region_blocks(func.body(m)).first()?;
    for op in m.all_ops(func.0) {
        needed |= match m.opcode(op) {
            // (No other program sees a buffer in UB.)
            Some(Opcode::Tt(tt::Kind::AtomicRmw | tt::Kind::AtomicCas)) if is_own(m, m.operands(op)[0]) => {
                continue;
            }
            Some(Opcode::Tt(tt::Kind::AtomicRmw)) => {
                let atomic = tt::AtomicRmw(op);
                !m.uses(atomic.result(m)).is_empty()
                    || engine(atomic.rmw_op(m)).is_none()
                    || is_of_another_type(m, op)
            }
            Some(Opcode::Tt(tt::Kind::AtomicCas)) => true,
            _ => continue,
        };
        let outermost = m.ancestor_in_block(entry, op)?;
        first = first.or(Some(outermost));
        last = Some(outermost);
    }
    first.zip(last).filter(|_| needed)
}

/// Whether pointers lead to a buffer in UB.
pub(super) fn is_own(m: &Module, pointers: Value) -> bool {
    buffer_of(m, pointers).is_some_and(|buffer| space(m, buffer) == "UB")
}

/// Whether an atomic operation's values are of another type than what its pointers lead to.
pub(super) fn is_of_another_type(m: &Module, op: Op) -> bool {
    let element = |v: Value| m.element_type(m.value_type(v));
    let operands = m.operands(op);
    m.pointee_type(element(operands[0])) != Some(element(operands[1]))
}

/// Checks that programs that have the lock wait for no others.
///
/// # Errors
/// A barrier between the first and the last operation under it.
pub(super) fn alone(m: &Module, (first, last): (Op, Op)) -> Result<()> {
    let mut at = Some(first);
    while let Some(op) = at {
        if let Some(barrier) =
            m.all_ops(op).into_iter().find(|&op| hivm_more::SyncBlock::cast(m, op).is_some())
        {
            let text =
                "a barrier of programs between atomic operations that they do one program after the other";
            return Err(unsupported(m, barrier, text));
        }
        at = m.next_op(op).filter(|_| op != last);
    }
    Ok(())
}

/// Takes the lock in front of an operation.
pub(super) fn lock(module: &mut Module, before: Op) -> Value {
    let ty = MemRef { shape: vec![Some(1)], element: Type::I64, strided: false, space: &ascend::GLOBAL };
    let ty = ty.ty(module);
    let mut b = Builder::before(module, before);
    let lock = hivm_more::CreateSyncBlockLock::build(&mut b, None, ty).result(b.module);
    hivm_more::SyncBlockLock::build(&mut b, lock);
    lock
}

/// Gives the lock back in front of an operation, when all queues are done.
pub(super) fn unlock(module: &mut Module, lock: Value, before: Op) {
    let mut b = Builder::before(module, before);
    hivm::PipeBarrier::build(&mut b, Pipe::All);
    hivm_more::SyncBlockUnlock::build(&mut b, lock);
}

impl Lower<'_> {
    /// An atomic operation under the lock.
    pub fn atomic_by_scalar(
        &mut self,
        op: Op,
        pointers: Value,
        operands: [Option<Value>; 2],
        mask: Option<Value>,
    ) -> Result<()> {
        let result = self.m.result(op);
        let scalar = !self.is_tensor(result);
        let element = self.element(result);
        // (In memory it may be a number of another type, of as many bits.)
        let stored = self.m.pointee_type(self.element(pointers)).unwrap_or(element);
        if element == Type::I1 {
            return Err(unsupported(self.m, op, "truth values in global memory"));
        }
        let shape = if scalar { vec![1] } else { self.shape(result) };
        let given = operands.into_iter().flatten();
        let given = given.map(|v| self.elements(op, v)).collect::<Result<Vec<_>>>()?;
        let out = self.new_buffer(op, &shape, element, ascend::UB);
        let Scattered { places, indices, at, elsewhere } = self.scattered(op, pointers, mask, &shape)?;
        if let Some(elsewhere) = elsewhere {
            let float = self.m.is_float(element);
            let mut b = Builder::before(self.m, elsewhere);
            let zero = if float { b.float(0.0, element) } else { b.int(0, element) };
            self.put_at(elsewhere, zero, out, &indices);
        }
        let (memory, own) = self.place_at(at, &places, stored, &indices);
        let old = memref::Load::build(&mut Builder::before(self.m, at), memory, &own, stored);
        let old = old.result(self.m);
        let old = self.read_as(at, old, element);
        let values: Vec<Value> = given.iter().map(|&v| self.element_at(at, v, &indices)).collect();
        let new = self.new_value(op, at, old, &values)?;
        let new = self.read_as(at, new, stored);
        self.put_at(at, new, memory, &own);
        self.put_at(at, old, out, &indices);
        if !scalar {
            self.buffers.insert(result, out);
            return Ok(());
        }
        self.becomes_number(op, result, out);
        Ok(())
    }

    /// The bits of a number as one of another type.
    fn read_as(&mut self, at: Op, number: Value, ty: Type) -> Value {
        match self.m.value_type(number) == ty {
            true => number,
            false => arith::Bitcast::build(&mut Builder::before(self.m, at), number, ty).out(self.m),
        }
    }

    /// What an atomic operation writes.
    fn new_value(&mut self, op: Op, at: Op, old: Value, values: &[Value]) -> Result<Value> {
        let float = self.m.is_float(self.m.value_type(old));
        let kind = tt::AtomicRmw::cast(self.m, op).map(|atomic| atomic.rmw_op(self.m));
        let (m, v) = (&mut *self.m, values[0]);
        let mut b = Builder::before(m, at);
        Ok(match kind {
            Some(tt::RmwOp::Exch) => v,
            Some(tt::RmwOp::Add) => arith::Addi::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Fadd) => arith::Addf::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Max) => arith::Maxsi::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Min) => arith::Minsi::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Umax) => arith::Maxui::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Umin) => arith::Minui::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::And) => arith::Andi::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Or) => arith::Ori::build(&mut b, old, v).result(b.module),
            Some(tt::RmwOp::Xor) => arith::Xori::build(&mut b, old, v).result(b.module),
            None => {
                // Floats are the same where their bits are.
                let [x, y] = [old, v].map(|v| match float {
                    true => {
                        let bits = b.module.bits(b.module.value_type(v));
                        let ty = b.module.int_type(bits as u16);
                        arith::Bitcast::build(&mut b, v, ty).out(b.module)
                    }
                    false => v,
                });
                let same = arith::Cmpi::build(&mut b, x, y, arith::CmpIPredicate::Eq, Type::I1);
                let same = same.result(b.module);
                arith::Select::build(&mut b, same, values[1], old).result(b.module)
            }
        })
    }
}
