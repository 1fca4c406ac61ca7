//! `tt.print` and `tt.assert`.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_ir::{FloatKind, LocKind};
use tilewright_llvm::{CastOp, Scalar, Ty, Value};

use crate::{Hooks, Lower, Result, int_of};

impl<H: Hooks> Lower<'_, H> {
    /// Runs `body` where `cond` holds.
    fn when(&mut self, cond: Option<Value>, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(cond) = cond else { return body(self) };
        if self.b.is_false(cond) {
            return Ok(());
        }
        let here = self.b.block();
        let preheader = self.b.preheader();
        let then = self.b.create_block(here, preheader, &[]);
        let join = self.b.create_block(here, preheader, &[]);
        self.b.cond_br(cond, then, &[], join, &[]);
        self.b.switch_to(then);
        body(self)?;
        self.b.br(join, &[]);
        self.b.switch_to(join);
        Ok(())
    }

    /// A value as `printf` takes it, and how it is printed.
    fn printable(
        &mut self,
        v: Value,
        ir_ty: ir::Type,
        hex: bool,
        signed: bool,
    ) -> Result<(Value, &'static str)> {
        let kind = self.float_kind(ir_ty);
        let mut v = v;
        if hex && !matches!(self.b.ty(v).scalar, Scalar::Ptr(_)) {
            // The bits, as many digits as the type has.
            let bits = int_of(self.b.ty(v).bits());
            if kind.is_some() {
                v = self.b.bitcast(v, Ty::scalar(bits));
            }
            return Ok(match bits {
                Scalar::I64 => (v, "0x%016llx"),
                Scalar::I32 => (v, "0x%08x"),
                Scalar::I16 => (self.b.int_cast(v, Ty::I32, false), "0x%04x"),
                _ => (self.b.int_cast(v, Ty::I32, false), "0x%02x"),
            });
        }
        if let Some(kind) = kind {
            let wide = self.convert_floats(&vec![v].into(), kind, FloatKind::F64, false)?[0];
            return Ok((wide, "%f"));
        }
        let ty = self.b.ty(v);
        if matches!(ty.scalar, Scalar::Ptr(_)) {
            let bits = self.b.cast(CastOp::PtrToInt, v, Ty::I64);
            return Ok((bits, "0x%016llx"));
        }
        let signed = signed && ty != Ty::I1;
        if ty == Ty::I64 {
            return Ok((v, if signed { "%lli" } else { "%llu" }));
        }
        let wide = self.b.int_cast(v, Ty::I32, signed);
        Ok((wide, if signed { "%i" } else { "%u" }))
    }

    pub(crate) fn print(&mut self, op: tt::Print) -> Result<()> {
        let m = self.m;
        let (prefix, hex) = (op.prefix(m), op.hex(m));
        let signed = op.is_signed(m);
        let args: Vec<ir::Value> = op.args(m).to_vec();
        let axes = [tt::ProgramDim::X, tt::ProgramDim::Y, tt::ProgramDim::Z];
        let pid = axes.map(|axis| H::program_id(self, axis, false)).to_vec();
        // `%` of the author's text is no directive.
        let prefix = prefix.replace('%', "%%");
        if args.is_empty() {
            let first = self.is_first_thread();
            return self.when(Some(first), |s| {
                H::printf(s, &format!("pid (%u, %u, %u){prefix}\n"), &pid);
                Ok(())
            });
        }
        for (k, &arg) in args.iter().enumerate() {
            let ty = self.value_ty(arg);
            let regs = self.regs(arg)?;
            let is_signed = signed.get(k).is_some_and(|&s| s != 0);
            let which = if args.len() > 1 { format!("(operand {k}) ") } else { String::new() };
            if !m.is_tensor(ty) {
                let first = self.is_first_thread();
                self.when(Some(first), |s| {
                    let (v, format) = s.printable(regs[0], ty, hex, is_signed)?;
                    let mut values = pid.clone();
                    values.push(v);
                    H::printf(s, &format!("pid (%u, %u, %u) idx (){prefix}{which}{format}\n"), &values);
                    Ok(())
                })?;
                continue;
            }
            let layout = self.layout(ty)?;
            let owner = self.is_owner(&layout);
            // As wide as the dimension's largest, so that lines stand under each other.
            let width = |extent: &u32| format!("%{}u", (*extent - 1).max(1).ilog10() + 1);
            let index = m.shape(ty).unwrap_or_default().iter().map(width).collect::<Vec<_>>().join(", ");
            for r in layout.unique_registers() {
                let inside = self.in_bounds(&layout, r);
                let pred = self.all(&[owner, inside]);
                let coords: Vec<Value> = (0..layout.rank()).map(|d| self.coord(&layout, r, d)).collect();
                self.when(pred, |s| {
                    let (v, format) = s.printable(regs[r as usize], ty, hex, is_signed)?;
                    let mut values = pid.clone();
                    values.extend(coords);
                    values.push(v);
                    H::printf(
                        s,
                        &format!("pid (%u, %u, %u) idx ({index}){prefix}{which}{format}\n"),
                        &values,
                    );
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn assert(&mut self, op: tt::Assert) -> Result<()> {
        let m = self.m;
        let condition = op.condition(m);
        let regs = self.regs(condition)?;
        let ty = self.value_ty(condition);
        let mut fails = self.b.bool(false);
        if m.is_tensor(ty) {
            let layout = self.layout(ty)?;
            for r in layout.unique_registers() {
                let bad = self.b.not(regs[r as usize]);
                let inside = self.in_bounds(&layout, r);
                let bad = match inside {
                    Some(p) => self.b.and(bad, p),
                    None => bad,
                };
                fails = self.b.or(fails, bad);
            }
        } else {
            fails = self.b.not(regs[0]);
        }
        let (file, line) = self.place(m.op_loc(op.0));
        let message = op.message(m);
        self.when(Some(fails), |s| {
            H::fail(s, &message, &file, line);
            Ok(())
        })
    }

    fn place(&self, loc: ir::Loc) -> (String, u32) {
        match self.m.loc_kind(loc) {
            LocKind::File { file, line, .. } => (file.clone(), *line),
            LocKind::Name(_, child) => self.place(*child),
            LocKind::CallSite { callee, .. } => self.place(*callee),
            LocKind::Fused(locs) => locs.first().map_or(("unknown".into(), 0), |&l| self.place(l)),
            LocKind::Unknown => ("unknown".into(), 0),
        }
    }
}
