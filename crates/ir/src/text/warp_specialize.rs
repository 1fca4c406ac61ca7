//! The syntax of `ttg.warp_specialize`:
//!
//! ```text
//! %r = ttg.warp_specialize(%a, %b) attributes {requestedRegisters = array<i32: 24>}
//! default {
//!   ttg.warp_yield %x : i32
//! }
//! partition0(%arg0: i32, %arg1: i32) num_warps(1) {
//!   ttg.warp_return
//! } : (i32, i32) -> i32
//! ```

use super::custom::dict;
use super::lexer::Token;
use super::parser::{Parser, Result};
use super::printer::Printer;
use crate::attrs::AttrKind;
use crate::dialect::ttg;
use crate::entity::{Loc, Op, Type};
use crate::module::OpSpec;
use crate::opdef::OpDef;

const NUM_WARPS: &str = "partitionNumWarps";

pub(super) fn print(p: &mut Printer<'_>, op: Op) -> bool {
    let m = p.m;
    let w = ttg::WarpSpecialize(op);
    let Some(AttrKind::I32Array(num_warps)) = m.op_attr(op, NUM_WARPS).map(|a| m.attr_kind(a)) else {
        return false;
    };
    let partitions = w.partitions(m).to_vec();
    if m.regions(op).len() != 2 || num_warps.len() != partitions.len() {
        return false;
    }
    p.push("ttg.warp_specialize(");
    p.values(m.operands(op));
    p.push(")");
    p.attr_dict_with("attributes", op, &[NUM_WARPS]);
    p.push("\n");
    p.start_line();
    p.push("default ");
    p.region(w.default_region(m), false, false);
    for (i, (&region, n)) in partitions.iter().zip(num_warps).enumerate() {
        p.push("\n");
        p.start_line();
        p.push(&format!("partition{i}("));
        let args = m.region_blocks(region).first().map_or(&[][..], |&b| m.block_args(b));
        for (j, &arg) in args.iter().enumerate() {
            if j > 0 {
                p.push(", ");
            }
            p.value(arg);
            p.push(": ");
            p.ty(m.value_type(arg));
        }
        p.push(&format!(") num_warps({n}) "));
        p.region(region, false, false);
    }
    p.push(" : ");
    p.function_type(m.operands(op), m.results(op));
    true
}

pub(super) fn parse(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let at = p.position();
    p.expect(b'(')?;
    let captures = if p.peek() == Token::Punct(b')') { Vec::new() } else { p.operand_list()? };
    p.expect(b')')?;
    let attrs = if p.eat_word("attributes") { dict(p)? } else { Vec::new() };
    let op = p.module.create_op(OpSpec::new(def, loc));
    let &[default, holder] = p.module.regions(op) else { unreachable!("declared with two regions") };
    p.expect_word("default")?;
    p.region(default, &[])?;
    let block = p.module.append_block(holder, &[]);
    let partitions = p.module.create_op(OpSpec::new(ttg::Kind::Partitions.def(), Loc::UNKNOWN));
    p.module.append_op(block, partitions);
    let mut num_warps = Vec::new();
    while p.eat_word(&format!("partition{}", num_warps.len())) {
        p.expect(b'(')?;
        let mut args: Vec<(&str, usize, Type)> = Vec::new();
        while p.peek() != Token::Punct(b')') {
            let arg = p.operand()?;
            p.expect(b':')?;
            let ty = p.parse_type()?;
            args.push((arg.name, arg.at, ty));
            p.ignored_loc()?;
            if !p.eat(b',') {
                break;
            }
        }
        p.expect(b')')?;
        p.expect_word("num_warps")?;
        p.expect(b'(')?;
        num_warps.push(p.parse_i32()?);
        p.expect(b')')?;
        let region = p.module.add_region(partitions);
        p.isolated(|p| p.region(region, &args))?;
        // An empty partition without captures has a block too.
        if p.module.region_blocks(region).is_empty() {
            p.module.append_block(region, &[]);
        }
    }
    p.expect(b':')?;
    let (inputs, results) = p.function_type()?;
    let values = p.resolve_all(&captures, &inputs, at)?;
    p.module.set_operands_and_segments(op, &values, &[values.len() as u16]);
    for ty in results {
        p.module.add_result(op, ty);
    }
    let attr = p.module.attr(AttrKind::I32Array(num_warps));
    p.module.set_attr(op, NUM_WARPS, attr);
    p.set_attrs(op, attrs);
    Ok(op)
}
