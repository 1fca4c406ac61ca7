//! `tt.print`, in the format of Triton's device printing.

use std::fmt::Write;

use tilewright_ir::FloatKind;

use super::{Frame, read_bits};
use crate::elem::Elem;
use crate::kernels::cast;
use crate::program::{Program, V};

impl Frame {
    pub(super) fn print(&mut self, program: &Program, prefix: &str, args: &[V], hex: bool, signed: &[bool]) {
        let [x, y, z] = self.program_id;
        let pid = format!("pid ({x}, {y}, {z})");
        if args.is_empty() {
            let _ = writeln!(self.output, "{pid}{prefix}");
        }
        for (k, &v) in args.iter().enumerate() {
            let ty = Self::ty(program, v);
            let (n, size) = (self.len(ty), ty.elem.reg_size());
            self.dense(program, v);
            let operand = if args.len() > 1 { format!("(operand {k}) ") } else { String::new() };
            let is_signed = signed.get(k).copied().unwrap_or(true);
            for i in 0..n {
                let bits = read_bits(&self.regs[v.slot as usize].buf, size, i);
                let index = index_text(i, &ty.shape);
                let value = value_text(bits, ty.elem, hex, is_signed);
                let _ = writeln!(self.output, "{pid} idx ({index}){prefix}{operand}{value}");
            }
        }
    }
}

/// The coordinates of an element, each padded to the width of its dimension's largest.
fn index_text(mut i: usize, shape: &[u32]) -> String {
    let mut parts = Vec::new();
    for &extent in shape.iter().rev() {
        let width = (extent - 1).max(1).ilog10() as usize + 1;
        parts.push(format!("{:>width$}", i % extent as usize));
        i /= extent as usize;
    }
    parts.reverse();
    parts.join(", ")
}

fn value_text(bits: u64, elem: Elem, hex: bool, signed: bool) -> String {
    if elem == Elem::Ptr {
        return format!("{bits:#x}");
    }
    if hex {
        let mut raw = bits;
        if let Some(encode) = cast::to_memory(elem) {
            raw = 0;
            // SAFETY: one element each, in eight bytes.
            unsafe { encode([(&raw const bits).cast(); 3], (&raw mut raw).cast(), 1) };
        }
        return format!("0x{raw:0width$x}", width = elem.mem_size() * 2);
    }
    let float = |x: f64| match x {
        x if x.is_nan() => "nan".to_string(),
        x if x.is_infinite() => if x > 0.0 { "inf" } else { "-inf" }.to_string(),
        x => format!("{x:.6}"),
    };
    match elem {
        Elem::Float(FloatKind::F64) => float(f64::from_bits(bits)),
        Elem::Float(_) => float(f64::from(f32::from_bits(bits as u32))),
        _ if signed => (elem.canonical(bits) as i64).to_string(),
        _ => bits.to_string(),
    }
}
