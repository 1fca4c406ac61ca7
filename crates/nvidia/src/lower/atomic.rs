//! Atomic instructions on global and shared memory.

use std::fmt::Write as _;

use tilewright_ir::dialect::tt;
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{Atomic, Words, int_of};

use super::access::Asm;
use super::{Lower, Result};

impl Lower<'_, '_> {
    /// One element's operation; gives its bits before.
    pub fn atomic(
        &mut self,
        what: Atomic,
        ptr: Value,
        values: &[Value],
        pred: Option<Value>,
    ) -> Result<Value> {
        let bits = what.ty.bits();
        // In the orders in which Triton writes them; `ptxas` takes either.
        let scope = self.scope_at(ptr, what.scope);
        let semantics = what.sem.keyword();
        let suffix = format!("{scope}.{semantics}");
        let Some(kind) = what.rmw else {
            if bits < 16 {
                return Err(self.unsupported(format!("atomics on {bits}-bit values")));
            }
            let suffix = format!("{semantics}.{scope}");
            return Ok(self.emit_atomic(&format!("cas.b{bits}"), &suffix, false, ptr, values, bits, pred));
        };
        let operation = match (kind, what.ty.scalar) {
            (tt::RmwOp::And, _) => format!("and.b{bits}"),
            (tt::RmwOp::Or, _) => format!("or.b{bits}"),
            (tt::RmwOp::Xor, _) => format!("xor.b{bits}"),
            (tt::RmwOp::Exch, _) => format!("exch.b{bits}"),
            (tt::RmwOp::Add, _) => format!("add.u{bits}"),
            (tt::RmwOp::Max, _) => format!("max.s{bits}"),
            (tt::RmwOp::Min, _) => format!("min.s{bits}"),
            (tt::RmwOp::Umax, _) => format!("max.u{bits}"),
            (tt::RmwOp::Umin, _) => format!("min.u{bits}"),
            (tt::RmwOp::Fadd, Scalar::F16) => "add.noftz.f16".into(),
            (tt::RmwOp::Fadd, Scalar::BF16) if self.facts().bf16_arithmetic => "add.noftz.bf16".into(),
            (tt::RmwOp::Fadd, Scalar::F32) => "add.f32".into(),
            (tt::RmwOp::Fadd, Scalar::F64) => "add.f64".into(),
            (tt::RmwOp::Fadd, Scalar::BF16) => return Ok(self.add_bf16(ptr, values[0], &suffix, pred)),
            _ => return Err(self.unsupported(format!("atomic {} of this type", kind.keyword()))),
        };
        let fadd16 = kind == tt::RmwOp::Fadd && bits == 16;
        if bits < 32 && !fadd16 {
            return Err(self.unsupported(format!("atomics on {bits}-bit integers")));
        }
        // `red` has no acquire: nothing is read.
        let reduces = !what.used && kind != tt::RmwOp::Exch && what.sem == tt::MemSemantic::Relaxed;
        Ok(self.emit_atomic(&operation, &suffix, reduces, ptr, values, bits, pred))
    }

    /// The scope of an access: shared memory is nobody else's, or the cluster's.
    fn scope_at(&self, ptr: Value, scope: tt::MemSyncScope) -> &'static str {
        match self.state_space(ptr).0 {
            "shared" => "cta",
            "shared::cluster" => "cluster",
            _ => scope.keyword(),
        }
    }

    /// A fence between accesses to memory as that of `ptr` (PTX ISA, "membar / fence").
    pub fn fence(&mut self, ptr: Value, scope: tt::MemSyncScope) {
        let scope = self.scope_at(ptr, scope);
        self.b.asm(&format!("fence.acq_rel.{scope};"), "~{memory}", Effect::Write, &[], &[]);
    }

    /// Whether floats of this type that stand side by side are added to by one instruction: from sm_90 on (PTX ISA, "red").
    pub fn adds_side_by_side(&self, ty: Ty) -> bool {
        self.facts().capability >= 90 && matches!(ty.scalar, Scalar::F32 | Scalar::F16 | Scalar::BF16)
    }

    /// Such an addition of two elements and more, where `pred` holds.
    pub fn add_side_by_side(
        &mut self,
        ty: Ty,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        scope: tt::MemSyncScope,
    ) {
        let (operation, of) = match ty.scalar {
            Scalar::F32 => ("add", "f32"),
            Scalar::F16 => ("add.noftz", "f16x2"),
            _ => ("add.noftz", "bf16x2"),
        };
        let count = if words.count > 1 { format!(".v{}", words.count) } else { String::new() };
        let (base, offset) = self.split_global(ptr);
        let instruction = format!("red.global.{}.relaxed.{operation}{count}.{of}", scope.keyword());
        self.write(&instruction, (base, 'l', offset), values, words, pred, None);
    }

    /// bf16 addition where there is no instruction: compare and swap until nobody came in between.
    fn add_bf16(&mut self, ptr: Value, value: Value, suffix: &str, pred: Option<Value>) -> Value {
        let ty = Ty::scalar(Scalar::BF16);
        let here = self.b.block();
        let preheader = self.b.preheader();
        let (start, done) =
            (self.b.create_block(here, preheader, &[]), self.b.create_block(here, preheader, &[Ty::I16]));
        let zero = self.b.constant(Ty::I16, 0);
        match pred {
            Some(pred) => self.b.cond_br(pred, start, &[], done, &[zero]),
            None => self.b.br(start, &[]),
        }
        self.b.switch_to(start);
        let (space, letter) = self.state_space(ptr);
        let load = format!("ld.relaxed.gpu.{space}.b16 $0, [$1];");
        let first = self.b.asm1(&load, &format!("=h,{letter}"), Effect::Write, Ty::I16, &[ptr]);
        let again = self.b.create_block(start, Some(start), &[Ty::I16]);
        self.b.br(again, &[first]);
        self.b.switch_to(again);
        let expected = self.b.params(again)[0];
        let old = self.b.bitcast(expected, ty);
        let (x, y) = (self.as_f32(old), self.as_f32(value));
        let sum = self.b.bin(BinOp::FAdd, x, y);
        let sum = self.b.cast(CastOp::FpTrunc, sum, ty);
        let sum = self.b.bitcast(sum, Ty::I16);
        let seen = self.emit_atomic("cas.b16", suffix, false, ptr, &[expected, sum], 16, None);
        let same = self.b.icmp(IntPred::Eq, seen, expected);
        self.b.cond_br(same, done, &[seen], again, &[seen]);
        self.b.switch_to(done);
        self.b.params(done)[0]
    }

    /// The state space that a pointer points to, and LLVM's constraint letter of its register.
    fn state_space(&self, ptr: Value) -> (&'static str, char) {
        if self.is_shared(ptr) { (self.shared_space(ptr), 'r') } else { ("global", 'l') }
    }

    /// One atomic instruction on words of so many bits; gives the old word (or anything, for a reduction).
    fn emit_atomic(
        &mut self,
        operation: &str,
        suffix: &str,
        reduces: bool,
        ptr: Value,
        values: &[Value],
        bits: u32,
        pred: Option<Value>,
    ) -> Value {
        let int = Ty::scalar(int_of(bits));
        let values: Vec<Value> =
            values.iter().map(|&v| if self.b.ty(v).is_int() { v } else { self.b.bitcast(v, int) }).collect();
        let letter = match bits {
            64 => 'l',
            32 => 'r',
            _ => 'h',
        };
        let mut asm = Asm::default();
        if !reduces {
            asm.outputs(int, letter, 1);
        }
        let (base, offset) = self.b.split_offset(ptr);
        let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (ptr, 0) };
        let (space, register) = self.state_space(ptr);
        let mut address = asm.arg(base, register);
        if offset != 0 {
            let c = self.b.i32(offset);
            address = format!("{address}+{}", asm.arg(c, 'n'));
        }
        let names: Vec<String> = values.iter().map(|&v| asm.arg(v, letter)).collect();
        if let Some(pred) = pred {
            if !reduces {
                let _ = write!(asm.text, "mov.b{bits} $0, 0; ");
            }
            let p = asm.arg(pred, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let names = names.join(", ");
        let _ = if reduces {
            write!(asm.text, "red.{space}.{suffix}.{operation} [{address}], {names};")
        } else {
            write!(asm.text, "atom.{space}.{suffix}.{operation} $0, [{address}], {names};")
        };
        let (text, constraints) = (asm.text, asm.constraints);
        let out = self.b.asm(&text, &constraints, Effect::Write, &asm.results, &asm.args);
        match out.first() {
            Some(&v) => v,
            None => self.b.constant(int, 0),
        }
    }
}
