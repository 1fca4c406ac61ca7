//! `tt.extern_elementwise`: calls of libdevice.

use tilewright_ir::dialect::tt;
use tilewright_llvm::{Ty, Value};
use tilewright_lower::Regs;

use super::{Lower, Result};
use crate::libdevice;

impl Lower<'_, '_> {
    /// A call of a function of libdevice for each element.
    pub fn extern_elementwise(&mut self, op: tt::ExternElementwise) -> Result<()> {
        let m = self.m;
        let symbol = op.symbol(m);
        if !symbol.starts_with(libdevice::PREFIX) {
            return Err(
                self.unsupported(format!("the function `{symbol}`: only those of libdevice can be called"))
            );
        }
        let args: Vec<Regs> = op.srcs(m).iter().map(|&a| self.regs(a)).collect::<Result<_>>()?;
        let result = self.elem_ty(self.value_ty(op.result(m)))?;
        let params: Vec<Ty> = args.iter().map(|a| self.b.ty(a[0])).collect();
        let callee = self.b.module.declare(&symbol, &params, &[result]);
        let count = self.num_regs(m.value_type(op.result(m)))?;
        let mut out = Vec::with_capacity(count);
        for i in 0..count {
            let of_element: Vec<Value> = args.iter().map(|a| a[i]).collect();
            out.extend(self.b.call(callee, &of_element));
        }
        self.set_regs(op.result(m), out);
        Ok(())
    }
}
