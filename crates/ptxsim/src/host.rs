//! Functions that whoever runs a program provides, for calls of such as have no body in its text.

use crate::access::{read_bytes, write_bytes};
use crate::isa::{Flow, Inst};
use crate::machine::Cx;
use crate::regs::lanes;

/// A function of numbers.
#[derive(Clone, Debug)]
pub struct HostFunction {
    /// Bytes of each parameter.
    pub params: Vec<u32>,
    /// Bytes of the result.
    pub result: u32,
    /// What it computes: from the bytes of the parameters to those of the result.
    pub run: fn(&[&[u8]], &mut [u8]),
}

/// The function of a name, if there is one.
pub type HostFunctions = fn(&str) -> Option<HostFunction>;

/// No functions.
pub(crate) fn none(_: &str) -> Option<HostFunction> {
    None
}

/// Calls the function of number `imm`.
pub(crate) fn call(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let function = &cx.grid.code.provided[i.imm as usize];
    for l in lanes(cx.mask) {
        let (results, params) = i.list.split_at(i.flags as usize);
        let numbers: Vec<[u8; 8]> = params
            .iter()
            .zip(&function.params)
            .map(|(&r, &size)| read_bytes(&cx.w.local, cx.place(r, l), size).to_ne_bytes())
            .collect();
        let args: Vec<&[u8]> =
            numbers.iter().zip(&function.params).map(|(n, &size)| &n[..size as usize]).collect();
        let mut result = [0; 8];
        (function.run)(&args, &mut result[..function.result as usize]);
        let at = cx.place(results[0], l);
        write_bytes(&mut cx.w.local, at, function.result, u64::from_ne_bytes(result));
    }
    Flow::Next
}
