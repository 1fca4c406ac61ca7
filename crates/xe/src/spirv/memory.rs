//! Accesses to memory, ordinary and atomic.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, MemoryAccess, Op, StorageClass, Word};
use tilewright_llvm::view::Instruction;
use tilewright_llvm::{Global, GlobalId, Scalar, Space, Ty, Value};
use tilewright_lower::SHARED_MEMORY;

use super::Result;
use super::function::Body;
use super::types::held;

/// Scopes (SPIR-V §3.27).
pub(super) const DEVICE: u32 = 1;
pub(super) const WORK_GROUP: u32 = 2;
pub(super) const SUB_GROUP: u32 = 3;

/// Orders, and the memories that they are about (SPIR-V §3.25).
const ACQUIRE: u32 = 0x2;
const RELEASE: u32 = 0x4;
pub(super) const ACQUIRE_RELEASE: u32 = 0x8;
pub(super) const OF_SUB_GROUP: u32 = 0x80;
pub(super) const OF_WORK_GROUP: u32 = 0x100;
pub(super) const OF_ALL: u32 = 0x200;

/// The scope of a name.
fn scope_of(name: Option<&str>) -> u32 {
    match name {
        Some("device") => DEVICE,
        Some("group") => WORK_GROUP,
        _ => 0,
    }
}

impl Body<'_, '_> {
    /// An address as a pointer to a type.
    fn place(&mut self, address: Value, to: Ty) -> Result<(Word, StorageClass)> {
        let Scalar::Ptr(space) = self.view.ty(address).scalar else {
            return Err("an access through what is no pointer".to_string());
        };
        let at = self.value(address)?;
        match space {
            Space::Global | Space::Generic => {
                let class = StorageClass::CrossWorkgroup;
                let ty = self.e.pointer(class, held(to))?;
                Ok((self.op_of(Op::ConvertUToPtr, ty, vec![Operand::IdRef(at)]), class))
            }
            Space::Shared => {
                let class = StorageClass::Workgroup;
                let (array, byte) = (self.e.shared()?, self.e.pointer(class, Ty::I8)?);
                let ids = vec![Operand::IdRef(array), Operand::IdRef(at)];
                let byte = self.op_of(Op::InBoundsAccessChain, byte, ids);
                if held(to) == Ty::I8 {
                    return Ok((byte, class));
                }
                let ty = self.e.pointer(class, held(to))?;
                Ok((self.op_of(Op::Bitcast, ty, vec![Operand::IdRef(byte)]), class))
            }
            _ => Err("memory of this kind".to_string()),
        }
    }

    fn access(align: u32, volatile: bool) -> [Operand; 2] {
        let volatile = if volatile { MemoryAccess::VOLATILE } else { MemoryAccess::NONE };
        [Operand::MemoryAccess(MemoryAccess::ALIGNED | volatile), Operand::LiteralBit32(align)]
    }

    pub(super) fn load(&mut self, ty: Ty, address: Value, align: u32, volatile: bool) -> Result<Word> {
        let (pointer, _) = self.place(address, ty)?;
        let [how, align] = Self::access(align, volatile);
        self.op_with(Op::Load, ty, vec![Operand::IdRef(pointer), how, align])
    }

    pub(super) fn store(&mut self, args: &[Value], align: u32, volatile: bool) -> Result<()> {
        let (pointer, _) = self.place(args[0], self.view.ty(args[1]))?;
        let value = self.value(args[1])?;
        let [how, align] = Self::access(align, volatile);
        self.act(Op::Store, vec![Operand::IdRef(pointer), Operand::IdRef(value), how, align]);
        Ok(())
    }

    /// The address of a global: that of the work group's memory is 0.
    pub(super) fn global(&mut self, id: GlobalId) -> Result<Word> {
        let global = self.e.module.globals.get(id.index());
        match global {
            Some(global) if global.name == SHARED_MEMORY => self.e.number(0),
            Some(Global { init: Some(bytes), align, .. }) => {
                let table = self.e.table(id.index(), bytes, *align)?;
                self.op(Op::ConvertPtrToU, Ty::I64, &[table])
            }
            _ => Err("a variable of the whole grid".to_string()),
        }
    }

    /// `xe.fence.SCOPE.ORDER`.
    pub(super) fn fence(&mut self, name: &str) -> Result<()> {
        let (scope, order) = name.split_once('.').unwrap_or((name, ""));
        let order = match order {
            "acquire" => ACQUIRE,
            "release" => RELEASE,
            _ => ACQUIRE_RELEASE,
        };
        let (scope, order) = (self.e.number(scope_of(Some(scope)))?, self.e.number(order | OF_ALL)?);
        self.act(Op::MemoryBarrier, vec![Operand::IdScope(scope), Operand::IdMemorySemantics(order)]);
        Ok(())
    }

    /// `xe.atomic.OP.SCOPE.ORDER`.
    pub(super) fn atomic(&mut self, inst: &Instruction<'_>, name: &str) -> Result<()> {
        let mut words = name.split('.');
        let (what, scope, order) = (words.next(), words.next(), words.next());
        let op = match what {
            Some("add") => Op::AtomicIAdd,
            Some("and") => Op::AtomicAnd,
            Some("or") => Op::AtomicOr,
            Some("xor") => Op::AtomicXor,
            Some("exch") => Op::AtomicExchange,
            Some("smax") => Op::AtomicSMax,
            Some("smin") => Op::AtomicSMin,
            Some("umax") => Op::AtomicUMax,
            Some("umin") => Op::AtomicUMin,
            Some("cas") => Op::AtomicCompareExchange,
            _ => return Err(format!("the atomic operation `{name}`")),
        };
        let Some(result) = inst.results().next() else { return Ok(()) };
        let ty = self.view.ty(result);
        if ty.bits() == 64 {
            self.e.needs(Capability::Int64Atomics);
        }
        let (pointer, class) = self.place(inst.args[0], ty)?;
        let scope = scope_of(scope);
        let memory = if class == StorageClass::Workgroup { OF_WORK_GROUP } else { OF_ALL };
        let (order, failed) = match order {
            Some("acquire") => (ACQUIRE | memory, ACQUIRE | memory),
            Some("release") => (RELEASE | memory, 0),
            Some("acq_rel") => (ACQUIRE_RELEASE | memory, ACQUIRE | memory),
            _ => (0, 0),
        };
        let (scope, order) = (self.e.number(scope)?, self.e.number(order)?);
        let mut operands =
            vec![Operand::IdRef(pointer), Operand::IdScope(scope), Operand::IdMemorySemantics(order)];
        let mut values = self.values(&inst.args[1..])?;
        if op == Op::AtomicCompareExchange {
            operands.push(Operand::IdMemorySemantics(self.e.number(failed)?));
            // The new value, then what is compared with.
            values.reverse();
        }
        operands.extend(values.into_iter().map(Operand::IdRef));
        let made = self.op_with(op, ty, operands)?;
        self.define(result, made)
    }
}
