//! `tt.extern_elementwise`: calls of libdevice, of intrinsics of LLVM, of a user's own libraries, and what the GPU is asked.

use tilewright_ir::dialect::tt;
use tilewright_libdevice::{self as functions, MACHINE, Query, Type};
use tilewright_llvm::{Effect, Ty, Value};
use tilewright_lower::Regs;

use super::{Lower, Result};
use crate::libdevice;

/// What the names of LLVM's intrinsics begin with.
const INTRINSIC: &str = "llvm.";

/// What is one instruction of ours: conversions that LLVM takes for those to nearest (`llvm.nvvm.i2f.rz` and its like), and what the
/// bitcode of some CUDA releases lacks.
const INSTRUCTIONS: [(&str, &str, &str); 7] = [
    ("__nv_fast_tanhf", "tanh.approx.f32", "=f,f"),
    ("__nv_int2float_rz", "cvt.rz.f32.s32", "=f,r"),
    ("__nv_uint2float_rz", "cvt.rz.f32.u32", "=f,r"),
    ("__nv_ll2float_rz", "cvt.rz.f32.s64", "=f,l"),
    ("__nv_ull2float_rz", "cvt.rz.f32.u64", "=f,l"),
    ("__nv_ll2double_rz", "cvt.rz.f64.s64", "=d,l"),
    ("__nv_ull2double_rz", "cvt.rz.f64.u64", "=d,l"),
];

fn lowered(ty: Type) -> Ty {
    match ty {
        Type::I32 | Type::U32 => Ty::I32,
        Type::I64 | Type::U64 => Ty::I64,
        Type::F32 => Ty::F32,
        Type::F64 => Ty::F64,
    }
}

impl Lower<'_, '_> {
    /// A call of a function of a library for each element.
    pub fn extern_elementwise(&mut self, op: tt::ExternElementwise) -> Result<()> {
        let m = self.m;
        let symbol = op.symbol(m);
        let result = self.elem_ty(self.value_ty(op.result(m)))?;
        if op.libname(m) == MACHINE
            && let Some(query) = Query::of_symbol(&symbol)
        {
            let value = self.query(query)?;
            self.set_regs(op.result(m), vec![value]);
            return Ok(());
        }
        let args: Vec<Regs> = op.srcs(m).iter().map(|&a| self.regs(a)).collect::<Result<_>>()?;
        let params: Vec<Ty> = args.iter().map(|a| self.b.ty(a[0])).collect();
        self.check_symbol(&symbol, op.libpath(m).is_empty(), &params, result)?;
        let effect = if op.pure(m) { Effect::Pure } else { Effect::Write };
        let count = self.num_regs(m.value_type(op.result(m)))?;
        let mut out = Vec::with_capacity(count);
        for i in 0..count {
            let of_element: Vec<Value> = args.iter().map(|a| a[i]).collect();
            let conversion = INSTRUCTIONS.iter().find(|(name, ..)| *name == symbol);
            if let Some((_, cvt, constraints)) = conversion {
                let text = format!("{cvt} $0, $1;");
                out.push(self.b.asm1(&text, constraints, Effect::Pure, result, &of_element));
            } else if symbol.starts_with(INTRINSIC) {
                out.push(self.b.intrinsic(&symbol, effect, Some(result), &of_element));
            } else {
                let callee = self.b.module.declare(&symbol, &params, &[result]);
                out.extend(self.b.call(callee, &of_element));
            }
        }
        self.set_regs(op.result(m), out);
        Ok(())
    }

    /// That a function of libdevice is there and has these types. What a user's library has is seen when it is linked.
    fn check_symbol(&self, symbol: &str, ours: bool, params: &[Ty], result: Ty) -> Result<()> {
        if !ours || symbol.starts_with(INTRINSIC) {
            return Ok(());
        }
        let Some(function) = functions::of_symbol(symbol) else {
            return Err(if symbol.starts_with(libdevice::PREFIX) {
                self.error(format!("libdevice has no function `{symbol}` of elements"))
            } else {
                self.error(format!("no library is named that has the function `{symbol}`"))
            });
        };
        if lowered(function.result) != result
            || !function.params.iter().map(|&p| lowered(p)).eq(params.iter().copied())
        {
            return Err(self.error(function.takes()));
        }
        Ok(())
    }

    /// What the GPU is asked, or told.
    fn query(&mut self, query: Query) -> Result<Value> {
        let dependent = matches!(query, Query::GdcWait | Query::GdcLaunchDependents);
        if dependent && self.hooks.target.capability() < 90 {
            let name = query.name();
            return Err(
                self.error(format!("`{name}` needs compute capability 9.0, {} has less", self.hooks.target))
            );
        }
        Ok(match query {
            Query::GlobalTimer => self.b.asm1("mov.u64 $0, %globaltimer;", "=l", Effect::Write, Ty::I64, &[]),
            Query::Smid => self.b.asm1("mov.u32 $0, %smid;", "=r", Effect::Pure, Ty::I32, &[]),
            Query::GdcWait | Query::GdcLaunchDependents => {
                let what = if query == Query::GdcWait { "wait" } else { "launch_dependents" };
                self.b.asm(&format!("griddepcontrol.{what};"), "~{memory}", Effect::Write, &[], &[]);
                self.b.i32(0)
            }
        })
    }
}
