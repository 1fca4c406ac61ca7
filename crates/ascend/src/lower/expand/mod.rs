//! Operations that these cores have no instruction for become several that they have, on tensors still.
//!
//! Pointers of another type are what they were (`pointers`). Floats of 8 bits are bytes: what converts them computes with integers (`fp8`), products of them are of fp16, which holds them all, and everything else only moves them.
//!
//! ```text
//! %y = tt.fp_to_fp %x : tensor<64xf8E5M2> -> tensor<64xf16>      =>      %0 = arith.extui %x : tensor<64xi8> to tensor<64xi16>
//!                                                                        %1 = arith.shli %0, 8 ; %y = arith.bitcast %1 : tensor<64xi16> to tensor<64xf16>
//! ```

mod bytes;
mod elements;
mod fp8;
mod functions;
mod pointers;

use tilewright_ir::dialect::tt;
use tilewright_ir::{Diagnostic, Module, Op, Opcode};

/// Expands what a module has of them.
///
/// # Errors
/// What is not supported yet.
pub(super) fn run(module: &mut Module) -> Result<(), Diagnostic> {
    pointers::run(module);
    let root = module.root();
    for op in module.all_ops(root) {
        expand(module, op)?;
    }
    bytes::run(module)
}

fn expand(module: &mut Module, op: Op) -> Result<(), Diagnostic> {
    match module.opcode(op) {
        Some(Opcode::Tt(tt::Kind::FpToFp)) => fp8::conversion(module, tt::FpToFp(op)),
        Some(Opcode::Tt(tt::Kind::Dot)) => {
            fp8::operands(module, tt::Dot(op));
            Ok(())
        }
        Some(Opcode::Tt(tt::Kind::ExternElementwise)) => {
            functions::library(module, tt::ExternElementwise(op))
        }
        _ => {
            functions::rounded(module, op);
            Ok(())
        }
    }
}
