//! The operations whose syntax is written by hand: the module, functions, constants, and control flow.
//!
//! Together with the parser and the printer, since the syntax of these operations is called from both and calls both for what lies
//! inside.

use super::constants;
use super::lexer::Token;
use super::parser::{Operand, Parser, Result};
use super::print_types::is_silent;
use super::printer::Printer;
use super::warp_specialize;
use crate::attrs::{AttrKind, Name};
use crate::dialect::{arith, builtin, cf, func, scf, tt, ttg};
use crate::entity::{Attr, Block, Loc, Op, Region, Type, Value};
use crate::module::{Module, OpSpec};
use crate::opdef::{OpDef, Opcode, Trait};
use crate::types::TypeKind;

// ---- printing -------------------------------------------------------------------------------------------------

/// Prints an operation, if its syntax is written here (and the operation is well-formed enough for it).
pub(crate) fn print(p: &mut Printer<'_>, op: Op, def: &'static OpDef) -> bool {
    match def.opcode {
        Opcode::Builtin(builtin::Kind::Module) => print_module(p, op),
        Opcode::Tt(tt::Kind::Func) | Opcode::Func(func::Kind::Func) => print_func(p, op),
        Opcode::Tt(tt::Kind::Clampf) => print_clampf(p, op),
        Opcode::Arith(arith::Kind::Constant) => print_constant(p, op),
        Opcode::Arith(arith::Kind::Select) => print_select(p, op),
        Opcode::Scf(scf::Kind::For) => print_for(p, op),
        Opcode::Scf(scf::Kind::If) => print_if(p, op),
        Opcode::Scf(scf::Kind::While) => print_while(p, op),
        Opcode::Cf(cf::Kind::Br) => print_br(p, op),
        Opcode::Cf(cf::Kind::CondBr) => print_cond_br(p, op),
        Opcode::Ttg(ttg::Kind::WarpSpecialize) => warp_specialize::print(p, op),
        _ => false,
    }
}

fn print_module(p: &mut Printer<'_>, op: Op) -> bool {
    p.push("module");
    if let Some(name) = p.m.symbol_name(op) {
        p.push(" ");
        p.symbol(name);
    }
    p.attr_dict_with("attributes", op, &["sym_name"]);
    p.push(" ");
    p.region(p.m.regions(op)[0], false, false);
    true
}

const FUNC_ATTRS: [&str; 5] = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];

fn dict_at(m: &Module, attrs: Option<Attr>, index: usize) -> Option<Attr> {
    let AttrKind::Array(items) = m.attr_kind(attrs?) else { return None };
    let &dict = items.get(index)?;
    match m.attr_kind(dict) {
        AttrKind::Dict(d) if !d.is_empty() => Some(dict),
        _ => None,
    }
}

fn print_func(p: &mut Printer<'_>, op: Op) -> bool {
    let m = p.m;
    let (Some(name), Some(ty)) = (m.symbol_name(op), m.op_attr(op, "function_type")) else { return false };
    let AttrKind::Type(ty) = *m.attr_kind(ty) else { return false };
    let TypeKind::Function { inputs, results } = m.type_kind(ty) else { return false };
    let &[region] = m.regions(op) else { return false };
    let entry = m.region_blocks(region).first().copied();
    if let Some(entry) = entry
        && !m.block_args(entry).iter().map(|&a| m.value_type(a)).eq(inputs.iter().copied())
    {
        return false;
    }
    p.push(m.op_name(op));
    p.push(" ");
    if let Some(AttrKind::Str(visibility)) = m.op_attr(op, "sym_visibility").map(|a| m.attr_kind(a)) {
        p.push(visibility);
        p.push(" ");
    }
    p.symbol(name);
    p.push("(");
    let arg_attrs = m.op_attr(op, "arg_attrs");
    for (i, &ty) in inputs.iter().enumerate() {
        if i > 0 {
            p.push(", ");
        }
        if let Some(entry) = entry {
            p.value(m.block_args(entry)[i]);
            p.push(": ");
        }
        p.ty(ty);
        if let Some(dict) = dict_at(m, arg_attrs, i) {
            p.push(" ");
            p.attr(dict);
        }
    }
    p.push(")");
    let res_attrs = m.op_attr(op, "res_attrs");
    if !results.is_empty() {
        p.push(" -> ");
        let bare = results.len() == 1
            && dict_at(m, res_attrs, 0).is_none()
            && !matches!(m.type_kind(results[0]), TypeKind::Function { .. });
        if !bare {
            p.push("(");
        }
        for (i, &ty) in results.iter().enumerate() {
            if i > 0 {
                p.push(", ");
            }
            p.ty(ty);
            if let Some(dict) = dict_at(m, res_attrs, i) {
                p.push(" ");
                p.attr(dict);
            }
        }
        if !bare {
            p.push(")");
        }
    }
    p.attr_dict_with("attributes", op, &FUNC_ATTRS);
    if entry.is_some() {
        p.push(" ");
        p.region(region, false, false);
    }
    true
}

fn print_constant(p: &mut Printer<'_>, op: Op) -> bool {
    let Some(value) = p.m.op_attr(op, "value") else { return false };
    if constants::constant_type(p.m, value).is_none() {
        return false;
    }
    p.push("arith.constant");
    p.attr_dict(op, &["value"]);
    p.push(" ");
    p.attr(value);
    true
}

fn print_select(p: &mut Printer<'_>, op: Op) -> bool {
    let &[condition, a, _] = p.m.operands(op) else { return false };
    p.push("arith.select ");
    p.values(p.m.operands(op));
    p.attr_dict(op, &[]);
    p.push(" : ");
    let ty = p.m.value_type(condition);
    if ty != Type::I1 {
        p.ty(ty);
        p.push(", ");
    }
    p.ty(p.m.value_type(a));
    true
}

const PROPAGATE_NAN: &str = "propagateNan";

fn print_clampf(p: &mut Printer<'_>, op: Op) -> bool {
    let &[x, ..] = p.m.operands(op) else { return false };
    p.push("tt.clampf ");
    p.values(p.m.operands(op));
    let all = p.m.op_attr(op, PROPAGATE_NAN).is_some();
    p.push(if all { ", propagateNan = all" } else { ", propagateNan = none" });
    p.attr_dict(op, &[PROPAGATE_NAN]);
    p.push(" : ");
    p.ty(p.m.value_type(x));
    true
}

/// Whether a region ends with a `scf.yield` of nothing, which is not printed.
fn ends_silently(m: &Module, region: Region) -> bool {
    one_block(m, region).and_then(|b| m.last_op(b)).is_some_and(|o| is_silent(m, o))
}

fn one_block(m: &Module, region: Region) -> Option<Block> {
    match m.region_blocks(region) {
        &[b] => Some(b),
        _ => None,
    }
}

fn assignments(p: &mut Printer<'_>, args: &[Value], inits: &[Value]) {
    p.push("(");
    for (i, (&arg, &init)) in args.iter().zip(inits).enumerate() {
        if i > 0 {
            p.push(", ");
        }
        p.value(arg);
        p.push(" = ");
        p.value(init);
    }
    p.push(")");
}

fn print_for(p: &mut Printer<'_>, op: Op) -> bool {
    let m = p.m;
    let (&[region], operands) = (m.regions(op), m.operands(op)) else { return false };
    let Some(body) = one_block(m, region) else { return false };
    let args = m.block_args(body);
    if operands.len() < 3 || args.len() != operands.len() - 2 || m.results(op).len() != operands.len() - 3 {
        return false;
    }
    let induction = m.value_type(args[0]);
    p.push("scf.for ");
    p.value(args[0]);
    p.push(" = ");
    p.value(operands[0]);
    p.push(" to ");
    p.value(operands[1]);
    p.push(" step ");
    p.value(operands[2]);
    p.push(" ");
    if args.len() > 1 {
        p.push("iter_args");
        assignments(p, &args[1..], &operands[3..]);
        p.push(" -> (");
        p.types_of(&operands[3..]);
        p.push(") ");
    }
    if induction != Type::INDEX {
        p.push(" : ");
        p.ty(induction);
        p.push(" ");
    }
    p.region(region, false, args.len() == 1 && ends_silently(m, region));
    p.attr_dict(op, &[]);
    true
}

fn print_if(p: &mut Printer<'_>, op: Op) -> bool {
    let m = p.m;
    let &[then_region, else_region] = m.regions(op) else { return false };
    let &[condition] = m.operands(op) else { return false };
    if one_block(m, then_region).is_none() || m.region_blocks(else_region).len() > 1 {
        return false;
    }
    p.push("scf.if ");
    p.value(condition);
    let results = m.results(op);
    if !results.is_empty() {
        p.push(" -> (");
        p.types_of(results);
        p.push(")");
    }
    p.push(" ");
    p.region(then_region, false, results.is_empty() && ends_silently(m, then_region));
    if !m.region_blocks(else_region).is_empty() {
        p.push(" else ");
        p.region(else_region, false, results.is_empty() && ends_silently(m, else_region));
    }
    p.attr_dict(op, &[]);
    true
}

fn print_while(p: &mut Printer<'_>, op: Op) -> bool {
    let m = p.m;
    let &[before, after] = m.regions(op) else { return false };
    let (Some(block), Some(_)) = (one_block(m, before), one_block(m, after)) else { return false };
    if m.block_args(block).len() != m.operands(op).len() {
        return false;
    }
    p.push("scf.while ");
    if !m.operands(op).is_empty() {
        assignments(p, m.block_args(block), m.operands(op));
        p.push(" ");
    }
    p.push(": ");
    p.function_type(m.operands(op), m.results(op));
    p.push(" ");
    p.region(before, false, false);
    p.push(" do ");
    p.region(after, true, false);
    p.attr_dict_with("attributes", op, &[]);
    true
}

fn destination(p: &mut Printer<'_>, block: Block, args: &[Value]) {
    p.block_label(block);
    if !args.is_empty() {
        p.push("(");
        p.values(args);
        p.push(" : ");
        p.types_of(args);
        p.push(")");
    }
}

fn print_br(p: &mut Printer<'_>, op: Op) -> bool {
    let &[to] = p.m.successors(op) else { return false };
    p.push("cf.br ");
    destination(p, to, p.m.operands(op));
    p.attr_dict(op, &[]);
    true
}

fn print_cond_br(p: &mut Printer<'_>, op: Op) -> bool {
    let &[yes, no] = p.m.successors(op) else { return false };
    let &condition = match p.m.operand_group(op, 0) {
        [c] => c,
        _ => return false,
    };
    p.push("cf.cond_br ");
    p.value(condition);
    p.push(", ");
    destination(p, yes, p.m.operand_group(op, 1));
    p.push(", ");
    destination(p, no, p.m.operand_group(op, 2));
    p.attr_dict(op, &[]);
    true
}

// ---- parsing --------------------------------------------------------------------------------------------------

/// Parses an operation after its name, if its syntax is written here.
pub(crate) fn parse(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Option<Op>> {
    match def.opcode {
        Opcode::Builtin(builtin::Kind::Module) => parse_inner_module(p, def, loc).map(Some),
        Opcode::Tt(tt::Kind::Func) | Opcode::Func(func::Kind::Func) => parse_func(p, def, loc).map(Some),
        Opcode::Tt(tt::Kind::Clampf) => parse_clampf(p, def, loc).map(Some),
        Opcode::Arith(arith::Kind::Constant) => parse_constant(p, def, loc).map(Some),
        Opcode::Arith(arith::Kind::Select) => parse_select(p, def, loc).map(Some),
        Opcode::Scf(scf::Kind::For) => parse_for(p, def, loc).map(Some),
        Opcode::Scf(scf::Kind::If) => parse_if(p, def, loc).map(Some),
        Opcode::Scf(scf::Kind::While) => parse_while(p, def, loc).map(Some),
        Opcode::Cf(cf::Kind::Br) => parse_br(p, def, loc).map(Some),
        Opcode::Cf(cf::Kind::CondBr) => parse_cond_br(p, def, loc).map(Some),
        Opcode::Ttg(ttg::Kind::WarpSpecialize) => warp_specialize::parse(p, def, loc).map(Some),
        _ => Ok(None),
    }
}

/// A module within another, after the word `module`.
fn parse_inner_module(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let op = p.module.create_op(OpSpec::new(def, loc));
    let region = p.module.regions(op)[0];
    let body = p.module.append_block(region, &[]);
    parse_module_body(p, op, body)?;
    Ok(op)
}

/// What stands after the word `module`, into this operation and its block.
pub(crate) fn parse_module_body(p: &mut Parser<'_>, module: Op, body: Block) -> Result<()> {
    if matches!(p.peek(), Token::At(_)) {
        let name = p.parse_symbol()?;
        let attr = p.module.attr(AttrKind::Str(name));
        p.module.set_attr(module, "sym_name", attr);
    }
    if p.eat_word("attributes") {
        let attrs = p.parse_dict()?;
        p.set_attrs(module, attrs);
    }
    p.isolated(|p| p.single_block_body(body, false))
}

fn parse_func(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    if let Token::Word(visibility @ ("public" | "private" | "nested")) = p.peek() {
        p.next();
        let attr = p.module.attr(AttrKind::Str(visibility.to_string()));
        spec.attr("sym_visibility", Some(attr));
    }
    let name = p.parse_symbol()?;
    let attr = p.module.attr(AttrKind::Str(name));
    spec.attr("sym_name", Some(attr));
    p.expect(b'(')?;
    let (mut names, mut inputs, mut arg_attrs) = (Vec::new(), Vec::new(), Vec::new());
    while p.peek() != Token::Punct(b')') {
        if matches!(p.peek(), Token::Value(..)) {
            let arg = p.operand()?;
            p.expect(b':')?;
            names.push((arg.name, arg.at));
        }
        inputs.push(p.parse_type()?);
        arg_attrs.push(dict(p)?);
        p.ignored_loc()?;
        if !p.eat(b',') {
            break;
        }
    }
    p.expect(b')')?;
    let (mut results, mut res_attrs) = (Vec::new(), Vec::new());
    if p.peek() == Token::Arrow {
        p.next();
        if p.eat(b'(') {
            while p.peek() != Token::Punct(b')') {
                results.push(p.parse_type()?);
                res_attrs.push(dict(p)?);
                if !p.eat(b',') {
                    break;
                }
            }
            p.expect(b')')?;
        } else {
            results.push(p.parse_type()?);
        }
    }
    for (name, dicts) in [("arg_attrs", arg_attrs), ("res_attrs", res_attrs)] {
        if dicts.iter().any(|d| !d.is_empty()) {
            let dicts = dicts.into_iter().map(|d| p.module.attr(AttrKind::Dict(d))).collect();
            let attr = p.module.attr(AttrKind::Array(dicts));
            spec.attr(name, Some(attr));
        }
    }
    let ty = p.module.ty(TypeKind::Function { inputs: inputs.clone(), results });
    let attr = p.module.attr(AttrKind::Type(ty));
    spec.attr("function_type", Some(attr));
    if p.eat_word("attributes") {
        let at = p.position();
        for (name, attr) in p.parse_dict()? {
            if FUNC_ATTRS.contains(&name.as_ref()) {
                return Err(
                    p.error_at(at, format!("the attribute `{name}` is said by the function's syntax"))
                );
            }
            spec.attr(name, Some(attr));
        }
    }
    let op = p.module.create_op(spec);
    if p.peek() == Token::Punct(b'{') {
        if names.len() != inputs.len() {
            return Err(p.error_here("a function with a body needs names for its arguments"));
        }
        let args: Vec<_> = names.iter().zip(&inputs).map(|(&(n, at), &t)| (n, at, t)).collect();
        let region = p.module.regions(op)[0];
        p.isolated(|p| p.region(region, &args))?;
    }
    Ok(op)
}

/// An attribute dictionary, if one follows.
pub(crate) fn dict(p: &mut Parser<'_>) -> Result<Vec<(Name, Attr)>> {
    if p.peek() == Token::Punct(b'{') { p.parse_dict() } else { Ok(Vec::new()) }
}

fn parse_constant(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    p.optional_attr_dict(&mut spec, def)?;
    let at = p.position();
    let value = p.parse_attr()?;
    let Some(ty) = constants::constant_type(&p.module, value) else {
        return Err(p.error_at(at, "a number or dense<...> expected"));
    };
    p.declared_attr(&mut spec, def, Name::Borrowed("value"), value);
    spec.results.push(ty);
    Ok(p.module.create_op(spec))
}

fn parse_clampf(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let mut operands = vec![p.operand()?];
    for _ in 0..2 {
        p.expect(b',')?;
        operands.push(p.operand()?);
    }
    if p.eat(b',') {
        p.expect_word(PROPAGATE_NAN)?;
        p.expect(b'=')?;
        if !p.eat_word("none") {
            p.expect_word("all")?;
            let attr = p.module.attr(AttrKind::Bool(true));
            spec.attr(PROPAGATE_NAN, Some(attr));
        }
    }
    p.optional_attr_dict(&mut spec, def)?;
    p.expect(b':')?;
    let ty = p.parse_type()?;
    for operand in operands {
        let value = p.resolve(operand, ty)?;
        spec.operand(value);
    }
    spec.results.push(ty);
    Ok(p.module.create_op(spec))
}

fn parse_select(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let at = p.position();
    let operands = p.operand_list()?;
    let &[condition, a, b] = operands.as_slice() else {
        return Err(p.error_at(at, "three operands expected"));
    };
    p.optional_attr_dict(&mut spec, def)?;
    p.expect(b':')?;
    let mut ty = p.parse_type()?;
    let mut condition_type = Type::I1;
    if p.eat(b',') {
        condition_type = ty;
        ty = p.parse_type()?;
    }
    for (operand, ty) in [(condition, condition_type), (a, ty), (b, ty)] {
        let value = p.resolve(operand, ty)?;
        spec.operand(value);
    }
    spec.results.push(ty);
    Ok(p.module.create_op(spec))
}

/// Ends the block of a region with `scf.yield` where the text leaves it out.
fn ensure_yield(p: &mut Parser<'_>, region: Region, loc: Loc) {
    ensure_end(p, region, scf::Kind::Yield.def(), loc);
}

/// Ends the last block of a region with an operation that gives nothing, where the text leaves it out.
pub(super) fn ensure_end(p: &mut Parser<'_>, region: Region, end: &'static OpDef, loc: Loc) {
    let block = match p.module.region_blocks(region) {
        [] => p.module.append_block(region, &[]),
        &[.., last] => last,
    };
    let ended = p
        .module
        .last_op(block)
        .is_some_and(|o| p.module.has_trait(o, Trait::Terminator) || !p.module.successors(o).is_empty());
    if !ended {
        let mut spec = OpSpec::new(end, loc);
        for _ in end.operands {
            spec.operand_group(&[]);
        }
        let op = p.module.create_op(spec);
        p.module.append_op(block, op);
    }
}

type Assignments<'s> = (Vec<Operand<'s>>, Vec<Operand<'s>>);

/// `(%a = %x, %b = %y)`
fn parse_assignments<'s>(p: &mut Parser<'s>) -> Result<Assignments<'s>> {
    p.expect(b'(')?;
    let (mut args, mut inits) = (Vec::new(), Vec::new());
    while p.peek() != Token::Punct(b')') {
        args.push(p.operand()?);
        p.expect(b'=')?;
        inits.push(p.operand()?);
        if !p.eat(b',') {
            break;
        }
    }
    p.expect(b')')?;
    Ok((args, inits))
}

fn parse_for(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let induction = p.operand()?;
    p.expect(b'=')?;
    let lower = p.operand()?;
    p.expect_word("to")?;
    let upper = p.operand()?;
    p.expect_word("step")?;
    let step = p.operand()?;
    let (mut args, mut inits, mut types) = (Vec::new(), Vec::new(), Vec::new());
    if p.eat_word("iter_args") {
        (args, inits) = parse_assignments(p)?;
        p.expect_arrow()?;
        types = p.result_type_list()?;
    }
    let ty = if p.eat(b':') { p.parse_type()? } else { Type::INDEX };
    for operand in [lower, upper, step] {
        let value = p.resolve(operand, ty)?;
        spec.operand(value);
    }
    let values = p.resolve_all(&inits, &types, induction.at)?;
    spec.operand_group(&values);
    spec.results.extend_from_slice(&types);
    let op = p.module.create_op(spec);
    let mut block_args = vec![(induction.name, induction.at, ty)];
    block_args.extend(args.iter().zip(&types).map(|(a, &t)| (a.name, a.at, t)));
    let region = p.module.regions(op)[0];
    p.region(region, &block_args)?;
    ensure_yield(p, region, loc);
    let attrs = dict(p)?;
    p.set_attrs(op, attrs);
    Ok(op)
}

fn parse_if(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let condition = p.operand()?;
    let condition = p.resolve(condition, Type::I1)?;
    spec.operand(condition);
    if p.peek() == Token::Arrow {
        p.next();
        spec.results = p.result_type_list()?.into_iter().collect();
    }
    let op = p.module.create_op(spec);
    let &[then_region, else_region] = p.module.regions(op) else {
        return Err(p.error_here("scf.if has two regions"));
    };
    p.region(then_region, &[])?;
    ensure_yield(p, then_region, loc);
    if p.eat_word("else") {
        p.region(else_region, &[])?;
        ensure_yield(p, else_region, loc);
    }
    let attrs = dict(p)?;
    p.set_attrs(op, attrs);
    Ok(op)
}

fn parse_while(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let at = p.position();
    let (mut args, mut inits) = (Vec::new(), Vec::new());
    if p.peek() == Token::Punct(b'(') {
        (args, inits) = parse_assignments(p)?;
    }
    p.expect(b':')?;
    let (inputs, results) = p.function_type()?;
    let values = p.resolve_all(&inits, &inputs, at)?;
    spec.operand_group(&values);
    spec.results.extend_from_slice(&results);
    let op = p.module.create_op(spec);
    let &[before, after] = p.module.regions(op) else {
        return Err(p.error_here("scf.while has two regions"));
    };
    let block_args: Vec<_> = args.iter().zip(&inputs).map(|(a, &t)| (a.name, a.at, t)).collect();
    p.region(before, &block_args)?;
    p.expect_word("do")?;
    p.region(after, &[])?;
    ensure_yield(p, after, loc);
    if p.eat_word("attributes") {
        let attrs = p.parse_dict()?;
        p.set_attrs(op, attrs);
    }
    Ok(op)
}

/// `^bb1(%a, %b : t, t)`
fn parse_destination(p: &mut Parser<'_>) -> Result<(Block, Vec<Value>)> {
    let block = p.successor()?;
    let mut values = Vec::new();
    if p.eat(b'(') {
        let at = p.position();
        let operands = p.operand_list()?;
        p.expect(b':')?;
        let types = p.type_list()?;
        values = p.resolve_all(&operands, &types, at)?;
        p.expect(b')')?;
    }
    Ok((block, values))
}

fn parse_br(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let (block, values) = parse_destination(p)?;
    spec.successors.push(block);
    spec.operand_group(&values);
    p.optional_attr_dict(&mut spec, def)?;
    Ok(p.module.create_op(spec))
}

fn parse_cond_br(p: &mut Parser<'_>, def: &'static OpDef, loc: Loc) -> Result<Op> {
    let mut spec = OpSpec::new(def, loc);
    let condition = p.operand()?;
    let condition = p.resolve(condition, Type::I1)?;
    spec.operand(condition);
    for _ in 0..2 {
        p.expect(b',')?;
        let (block, values) = parse_destination(p)?;
        spec.successors.push(block);
        spec.operand_group(&values);
    }
    p.optional_attr_dict(&mut spec, def)?;
    Ok(p.module.create_op(spec))
}
