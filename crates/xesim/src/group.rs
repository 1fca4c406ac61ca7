//! What lanes of a sub-group, and items of a work group, do together: shuffles, reductions, barriers, atomics.

use crate::Error;
use crate::module::{Type, id_of, malformed, unsupported, whole};
use crate::translate::{Translator, bits, result};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{GroupOperation, Op};

/// Scopes (SPIR-V §3.27).
const DEVICE: u64 = 1;
const WORK_GROUP: u64 = 2;
const SUB_GROUP: u64 = 3;

/// The memory whose order a barrier is about (SPIR-V §3.25): of the sub-group, the work group, all groups.
const MEMORIES: u64 = 0x80 | 0x100 | 0x200;

/// Whether [`Translator::group`] knows an operation.
pub(crate) fn is(op: Op) -> bool {
    shuffle(op).is_some() || reduction(op).is_some() || atomic(op).is_some() || is_barrier(op)
}

fn is_barrier(op: Op) -> bool {
    let split = matches!(op, Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL);
    split || matches!(op, Op::ControlBarrier | Op::MemoryBarrier)
}

/// The mode of `shfl`, and the operand with the value.
fn shuffle(op: Op) -> Option<(&'static str, usize)> {
    Some(match op {
        Op::SubgroupShuffleINTEL => ("idx", 0),
        Op::SubgroupShuffleXorINTEL => ("bfly", 0),
        Op::GroupNonUniformShuffle | Op::GroupNonUniformBroadcast | Op::GroupBroadcast => ("idx", 1),
        Op::GroupNonUniformShuffleXor => ("bfly", 1),
        _ => return None,
    })
}

/// Operation and kind of number.
fn reduction(op: Op) -> Option<(&'static str, char)> {
    Some(match op {
        Op::GroupIAdd | Op::GroupNonUniformIAdd => ("add", 's'),
        Op::GroupFAdd | Op::GroupNonUniformFAdd => ("add", 'f'),
        Op::GroupFMin | Op::GroupNonUniformFMin => ("min", 'f'),
        Op::GroupFMax | Op::GroupNonUniformFMax => ("max", 'f'),
        Op::GroupSMin | Op::GroupNonUniformSMin => ("min", 's'),
        Op::GroupSMax | Op::GroupNonUniformSMax => ("max", 's'),
        Op::GroupUMin | Op::GroupNonUniformUMin => ("min", 'u'),
        Op::GroupUMax | Op::GroupNonUniformUMax => ("max", 'u'),
        _ => return None,
    })
}

/// Operation of `atom` and kind of number.
fn atomic(op: Op) -> Option<(&'static str, char)> {
    Some(match op {
        Op::AtomicIAdd => ("add", 'u'),
        Op::AtomicFAddEXT => ("add", 'f'),
        Op::AtomicSMin => ("min", 's'),
        Op::AtomicSMax => ("max", 's'),
        Op::AtomicUMin => ("min", 'u'),
        Op::AtomicUMax => ("max", 'u'),
        Op::AtomicAnd => ("and", 'b'),
        Op::AtomicOr => ("or", 'b'),
        Op::AtomicXor => ("xor", 'b'),
        Op::AtomicExchange => ("exch", 'b'),
        Op::AtomicCompareExchange => ("cas", 'b'),
        _ => return None,
    })
}

impl Translator<'_> {
    pub(crate) fn group(&mut self, i: &Instruction) -> Result<(), Error> {
        let op = i.class.opcode;
        if is_barrier(op) {
            return self.barrier(i);
        }
        if atomic(op).is_some() {
            return self.atomic(i);
        }
        let (ty, _) = result(i)?;
        let (e, n) = self.module.elements(ty)?;
        if n != 1 || bits(&e) < 16 {
            return Err(unsupported(i, "this type between lanes"));
        }
        if let Some((mode, at)) = shuffle(op) {
            if at == 1 && self.number(i, 0)? != SUB_GROUP {
                return Err(unsupported(i, "this scope"));
            }
            let (value, lane) = (self.scalar(i, at)?, self.scalar(i, at + 1)?);
            if *self.module.ty(self.type_of(id_of(i, at + 1)?)?)? != Type::Int(32) {
                return Err(unsupported(i, "a lane's number of other than 32 bits"));
            }
            let bad = self.reg('p');
            self.op(format!("setp.ge.u32 {bad}, {lane}, {};", self.lanes));
            self.trap(&bad, "the lane is not below the sub-group's size");
            let out = self.shuffled(&e, mode, &value, &lane)?;
            return self.set(i, vec![out]);
        }
        self.reduce(i, &e)
    }

    /// `value` of another lane.
    pub(crate) fn shuffled(
        &mut self,
        e: &Type,
        mode: &str,
        value: &str,
        lane: &str,
    ) -> Result<String, Error> {
        // The upper half of `c` holds a lane to its sub-group, the lower ends it (PTX ISA, `shfl.sync`).
        let c = (32 - self.lanes) << 8 | 31;
        let mask = u32::MAX >> (32 - self.lanes);
        let one = |t: &mut Self, v: &str| {
            let r = t.reg('r');
            t.op(format!("shfl.sync.{mode}.b32 {r}, {v}, {lane}, {c}, {mask:#x};"));
            r
        };
        let out = self.reg_of(e)?;
        match bits(e) {
            32 => return Ok(one(self, value)),
            16 => {
                let (wide, rest) = (self.reg('r'), self.reg('h'));
                self.op(format!("mov.b32 {wide}, {{{value}, {value}}};"));
                let r = one(self, &wide);
                self.op(format!("mov.b32 {{{out}, {rest}}}, {r};"));
            }
            64 => {
                let (low, high) = (self.reg('r'), self.reg('r'));
                self.op(format!("mov.b64 {{{low}, {high}}}, {value};"));
                let (low, high) = (one(self, &low), one(self, &high));
                self.op(format!("mov.b64 {out}, {{{low}, {high}}};"));
            }
            _ => return Err(Error::new("not supported yet: bytes between lanes")),
        }
        Ok(out)
    }

    fn reduce(&mut self, i: &Instruction, e: &Type) -> Result<(), Error> {
        let (op, kind) = reduction(i.class.opcode).ok_or_else(|| malformed(i))?;
        if self.number(i, 0)? != SUB_GROUP
            || i.operands.get(1) != Some(&Operand::GroupOperation(GroupOperation::Reduce))
            || i.operands.len() != 3
        {
            return Err(unsupported(i, "this scope or kind of reduction"));
        }
        let mut value = self.scalar(i, 2)?;
        let mut distance = self.lanes / 2;
        while distance > 0 {
            let other = self.shuffled(e, "bfly", &value, &distance.to_string())?;
            let sum = self.reg_of(e)?;
            self.op(format!("{op}.{kind}{} {sum}, {value}, {other};", bits(e)));
            value = sum;
            distance /= 2;
        }
        self.set(i, vec![value])
    }

    /// A constant that operand `k` is.
    fn number(&self, i: &Instruction, k: usize) -> Result<u64, Error> {
        let c = self.module.constants.get(&id_of(i, k)?).and_then(whole);
        c.ok_or_else(|| unsupported(i, "a scope or order that is no constant"))
    }

    fn barrier(&mut self, i: &Instruction) -> Result<(), Error> {
        let control = i.class.opcode == Op::ControlBarrier;
        let scope = self.number(i, 0)?;
        if matches!(i.class.opcode, Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL) {
            return self.split_barrier(i, scope);
        }
        let semantics = self.number(i, if control { 2 } else { 1 })?;
        if semantics & MEMORIES == 0 {
            return Err(unsupported(i, "a barrier that orders no memory"));
        }
        let mask = u32::MAX >> (32 - self.lanes);
        match (control, scope) {
            (true, WORK_GROUP) => {
                // That of a work group orders memory among its items; what other groups see needs a fence.
                if self.number(i, 1)? <= DEVICE {
                    self.op("fence.acq_rel.gpu;");
                }
                self.trap("%arrived", "a barrier between the two halves of a split one");
                self.op("bar.sync 0;");
            }
            (true, SUB_GROUP) => self.op(format!("bar.warp.sync {mask:#x};")),
            (false, WORK_GROUP) => self.op("fence.acq_rel.cta;"),
            (false, 0) => self.op("fence.acq_rel.sys;"),
            (false, DEVICE) => self.op("fence.acq_rel.gpu;"),
            _ => return Err(unsupported(i, "this scope")),
        }
        Ok(())
    }

    /// A half of a barrier of the work group. To PTX it is one of a cluster, of one group.
    fn split_barrier(&mut self, i: &Instruction, scope: u64) -> Result<(), Error> {
        if scope != WORK_GROUP {
            return Err(unsupported(i, "this scope"));
        }
        let orders = self.number(i, 2)? & MEMORIES != 0;
        if orders && self.number(i, 1)? <= DEVICE {
            self.op("fence.acq_rel.gpu;");
        }
        match i.class.opcode {
            Op::ControlBarrierArriveINTEL => self.arrive(orders),
            _ => self.wait_for_arrivals(),
        }
        Ok(())
    }

    /// The first half. One that orders no memory is relaxed, and what waits for it then sees nothing by it.
    pub(crate) fn arrive(&mut self, orders: bool) {
        self.trap("%arrived", "arrives again without having waited");
        let order = if orders { "release" } else { "relaxed" };
        self.op(format!("barrier.cluster.arrive.{order};"));
        self.op("setp.eq.u32 %arrived, 0, 0;");
    }

    fn wait_for_arrivals(&mut self) {
        let bad = self.reg('p');
        self.op(format!("not.pred {bad}, %arrived;"));
        self.trap(&bad, "waits at a split barrier without having arrived");
        self.op("barrier.cluster.wait.acquire;");
        self.op("setp.ne.u32 %arrived, 0, 0;");
    }

    fn atomic(&mut self, i: &Instruction) -> Result<(), Error> {
        let (op, kind) = atomic(i.class.opcode).ok_or_else(|| malformed(i))?;
        let (space, _, e) = self.place(i, id_of(i, 0)?)?;
        let at = self.scalar(i, 0)?;
        let scope = match self.number(i, 1)? {
            0 => "sys",
            DEVICE => "gpu",
            WORK_GROUP => "cta",
            _ => return Err(unsupported(i, "this scope")),
        };
        let order = match self.number(i, 2)? & 0x1f {
            0 => "relaxed",
            2 => "acquire",
            4 => "release",
            8 => "acq_rel",
            _ => return Err(unsupported(i, "this order")),
        };
        // A value; of a compare and exchange, which have another order before them, the new one and the one to compare with.
        let values = if op == "cas" {
            format!("{}, {}", self.scalar(i, 5)?, self.scalar(i, 4)?)
        } else {
            self.scalar(i, 3)?
        };
        let out = self.reg_of(&e)?;
        self.op(format!("atom.{order}.{scope}.{space}.{op}.{kind}{} {out}, [{at}], {values};", bits(&e)));
        self.set(i, vec![out])
    }
}
