//! `cp.async`: copies from global to shared memory that run beside the threads (PTX ISA, "cp.async").

use std::fmt::Write as _;

use tilewright_ir as ir;
use tilewright_ir::dialect::tt::CacheModifier;
use tilewright_ir::dialect::ttg;
use tilewright_llvm::{Effect, Value};
use tilewright_lower::Val;

use super::access::{Asm, L2_HINT};
use super::{Lower, Result};

impl Lower<'_, '_> {
    /// `cp.async` of 4, 8 or 16 bytes a thread; masked-off elements become zero by a source size of 0.
    pub fn async_copy(&mut self, op: ttg::AsyncCopyGlobalToLocal) -> Result<()> {
        let m = self.m;
        let (src, dst) = (op.src(m), op.dst(m));
        let tile = self.layout(m.value_type(src))?;
        let ptrs = self.regs(src)?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        if let Some(other) = op.other(m) {
            let zero = self.regs(other)?.iter().all(|&v| self.b.as_const(v) == Some(0));
            if !zero {
                return Err(self.unsupported("an asynchronous copy whose masked-off elements are not zero"));
            }
        }
        let buffer = self.buffer(dst)?;
        let bits = m.bits(self.value_ty(dst)).max(8);
        let (axis, width) = self.access_width(&tile, bits);
        let (plan, shared) = self.plan_shared(&tile, &buffer, m.value_type(dst), width)?;
        let bytes = bits / 8;
        let size = plan.width * bytes;
        if !matches!(size, 4 | 8 | 16) {
            return Err(self.unsupported(format!(
                "an asynchronous copy of {size} bytes a thread (4, 8 or 16; elements of {bits} bits, vectors of {})",
                plan.width
            )));
        }
        let thread = self.thread_part(buffer.base, &plan, bytes);
        let owner = self.is_owner(&tile);
        // `.cg` goes past L1 and exists for 16 bytes only.
        let cache = if size == 16 && op.cache(m) != CacheModifier::Ca { "cg" } else { "ca" };
        let policy = self.l2_policy(op.evict(m));
        for access in &plan.accesses {
            let first = access.registers[0];
            let start = tile.register_coord(first);
            let runs = access.registers.iter().enumerate().all(|(i, &r)| {
                let c = tile.register_coord(r);
                (0..tile.rank()).all(|d| c[d] == start[d] + if d == axis { i as u32 } else { 0 })
            });
            if !runs {
                return Err(self.unsupported("an asynchronous copy that transposes"));
            }
            // Beyond the tensor nothing is copied; where the mask is off, zeros are.
            let inside = self.in_bounds(&tile, first);
            let exists = self.all(&[owner, inside]);
            if exists.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let wanted = mask.as_ref().map(|p| p[first as usize]).filter(|&p| !self.b.is_true(p));
            let to = self.shared_address(thread, access.offset, &shared, bytes);
            self.cp_async(to, ptrs[first as usize], (size, cache), wanted, exists, policy);
        }
        self.set(op.token(m), Val::Token);
        Ok(())
    }

    fn cp_async(
        &mut self,
        to: Value,
        from: Value,
        (size, cache): (u32, &str),
        wanted: Option<Value>,
        exists: Option<Value>,
        policy: Option<Value>,
    ) {
        let mut asm = Asm::default();
        let mut address = |s: &mut Self, p: Value, letter: char| {
            let (base, offset) = s.b.split_offset(p);
            let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (p, 0) };
            let name = asm.arg(base, letter);
            if offset == 0 {
                return name;
            }
            let c = s.b.i32(offset);
            format!("{name}+{}", asm.arg(c, 'n'))
        };
        let (to, from) = (address(self, to, 'r'), address(self, from, 'l'));
        if let Some(p) = exists {
            let p = asm.arg(p, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let hint = if policy.is_some() { L2_HINT } else { "" };
        let _ = write!(asm.text, "cp.async.{cache}.shared.global{hint} [{to}], [{from}], {size}");
        // "ignore-src": the instruction's own predicate, where a source size would have to be made and compared.
        if let Some(wanted) = wanted {
            let ignore = self.b.not(wanted);
            let ignore = asm.arg(ignore, 'b');
            let _ = write!(asm.text, ", {ignore}");
        }
        if let Some(policy) = policy {
            let policy = asm.arg(policy, 'l');
            let _ = write!(asm.text, ", {policy}");
        }
        asm.text.push(';');
        let (text, constraints) = (asm.text, asm.constraints);
        self.b.asm(&text, &constraints, Effect::Write, &[], &asm.args);
    }

    pub fn async_commit(&mut self, op: ir::Op) -> Result<()> {
        self.b.asm("cp.async.commit_group;", "", Effect::Write, &[], &[]);
        for &r in self.m.results(op) {
            self.set(r, Val::Token);
        }
        Ok(())
    }

    pub fn async_wait(&mut self, op: ttg::AsyncWait) -> Result<()> {
        let text = format!("cp.async.wait_group {};", op.num(self.m).max(0));
        self.b.asm(&text, "", Effect::Write, &[], &[]);
        for &r in self.m.results(op.0) {
            self.set(r, Val::Token);
        }
        Ok(())
    }
}
