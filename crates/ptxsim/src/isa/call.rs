//! Calls (§9.7.12.5).
//!
//! A call by name of a function that is not recursive has become its body ([`crate::flatten`]). What comes here are
//! calls by address and of recursive functions, and calls of what the CUDA runtime provides.
//!
//! The registers of a function exist once in a warp: a call saves what an outer activation has in the lane's part of
//! them, and `ret` puts it back. Parameters and local variables lie in a frame on the lane's stack, which begins behind
//! the entry's local memory; registers that hold their addresses are set by the call.

use super::{Dec, Flow, Inst, Sym};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg, lanes};
use crate::report::FindingKind;

/// Bytes of a lane's stack. A GPU has 1024 unless the host asks for more.
pub(crate) const STACK: u32 = 32 << 10;

/// A function that is called, as opposed to inlined.
#[derive(Debug, Default)]
pub(crate) struct Callee {
    pub name: String,
    /// What its name stands for as a value.
    pub address: u64,
    /// Its first instruction.
    pub entry: u32,
    /// Offsets in the frame and sizes of its parameters and results.
    pub params: Vec<(u32, u32)>,
    pub rets: Vec<(u32, u32)>,
    /// Bytes of the frame.
    pub frame: u32,
    /// Registers that hold addresses of the frame, and which.
    pub addresses: Vec<(Reg, i64)>,
    /// Every register of its own, those of `addresses` too.
    pub regs: Vec<Reg>,
    /// Those checked at run time.
    pub tracked: Vec<u32>,
}

/// The address of function `n` of the module: no memory is there.
pub(crate) fn address(n: usize) -> u64 {
    0x0f << 56 | (n as u64 + 1) << 4
}

/// What a lane goes back to.
struct Activation {
    function: usize,
    back: u32,
    frame: u32,
    /// Where the caller wants the results.
    rets: Vec<u64>,
    regs: Vec<u128>,
    init: Vec<bool>,
}

/// The activations of a warp's lanes.
#[derive(Default)]
pub(crate) struct Calls(Vec<Vec<Activation>>);

impl Calls {
    /// How many calls a lane is in.
    pub fn depth(&self, lane: usize) -> usize {
        self.0.get(lane).map_or(0, Vec::len)
    }
}

pub(super) fn call(d: &mut Dec) -> Result<(), Error> {
    d.has("uni");
    let names: Vec<&String> = (d.ins.operands.iter())
        .filter_map(|o| match o {
            Operand::Ident(n) => Some(n),
            _ => None,
        })
        .collect();
    let Some(&name) = names.first() else { return d.fail("the function's name is missing") };
    let at = d.ins.operands.iter().position(|o| matches!(o, Operand::Ident(_))).unwrap_or(0);
    let of = |o: Option<&Operand>| match o {
        Some(Operand::List(l)) => l.clone(),
        _ => vec![],
    };
    let rets = of(d.ins.operands[..at].first());
    let args = of(d.ins.operands.get(at + 1));
    d.out.list = (rets.iter().chain(&args)).map(|o| place(d, o)).collect::<Result<_, _>>()?;
    d.out.flags = rets.len() as u32;
    match d.env.lookup(name) {
        Some(Sym::Reg(_)) => {
            d.out.a = d.src_op(&Operand::Ident(name.clone()), Ty::B64)?;
            d.out.exec = exec;
            return Ok(());
        }
        Some(Sym::Func(n, true)) => {
            d.out.a = d.env.constant(File::D, address(n).into());
            d.out.exec = exec;
            return Ok(());
        }
        _ => {}
    }
    if let Some(function) = (d.env.host)(name) {
        if (rets.len(), args.len()) != (1, function.params.len()) {
            return d.fail(format!("`{name}` has {} parameters and a result", function.params.len()));
        }
        d.out.imm = d.env.provided.len() as i64;
        d.env.provided.push(function);
        d.out.exec = crate::host::call;
        return Ok(());
    }
    d.out.exec = match (name.as_str(), args.len()) {
        ("vprintf", 2) => super::printf::vprintf,
        ("__assertfail", 5) => super::printf::assertfail,
        ("__nv_abort" | "abort", _) => |cx, _| {
            let l = cx.mask.trailing_zeros() as usize;
            cx.find(FindingKind::Trap, l, None, "the kernel aborts".into());
            Flow::Stop
        },
        _ => {
            return d.fail(format!(
                "not supported yet: `{name}` has no body, and is not a system function known here"
            ));
        }
    };
    Ok(())
}

/// The register that holds the address of a call's parameter.
fn place(d: &mut Dec, o: &Operand) -> Result<u32, Error> {
    if let Operand::Ident(n) = o
        && let Some(Sym::Var(a)) = d.env.lookup(n)
        && a.is_local()
    {
        return Ok(d.env.address(File::D, a, 0));
    }
    d.fail("a call's parameters must be `.param` variables")
}

/// Adds a lane to those that go to `pc`.
fn send(targets: &mut Vec<(u32, u32)>, pc: u32, lane: usize) {
    match targets.iter_mut().find(|t| t.0 == pc) {
        Some(t) => t.1 |= 1 << lane,
        None => targets.push((pc, 1 << lane)),
    }
}

/// Where the lanes go that do not take part, with those that do.
fn part(cx: &mut Cx<'_>, mut targets: Vec<(u32, u32)>) -> Flow {
    for l in lanes(cx.frag & !cx.mask) {
        send(&mut targets, cx.pc + 1, l);
    }
    cx.targets = targets;
    Flow::Switch
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    cx.unit.effects += 1;
    let to = cx.get::<u64>(i.a);
    let mut targets = vec![];
    for l in lanes(cx.mask) {
        match enter(cx, i, l, to[l]) {
            Ok(pc) => send(&mut targets, pc, l),
            Err((kind, m)) => {
                cx.find(kind, l, Some(to[l]), m);
                return Flow::Stop;
            }
        }
    }
    part(cx, targets)
}

/// Begins an activation of the function at `to` in a lane, and gives its first instruction.
fn enter(cx: &mut Cx<'_>, i: &Inst, l: usize, to: u64) -> Result<u32, (FindingKind, String)> {
    let code = cx.grid.code;
    let Some(function) = code.functions.iter().position(|f| f.address == to) else {
        return Err((FindingKind::Trap, format!("a call of {to:#x}, where no function is")));
    };
    let f = &code.functions[function];
    let (rets, args) = i.list.split_at(i.flags as usize);
    if rets.len() != f.rets.len() || args.len() != f.params.len() {
        let m = format!(
            "`{}` has {} parameters and {} results and is called with {} and {}",
            f.name,
            f.params.len(),
            f.rets.len(),
            args.len(),
            rets.len()
        );
        return Err((FindingKind::Trap, m));
    }
    if cx.w.calls.0.is_empty() {
        cx.w.calls.0.resize_with(LANES, Vec::new);
    }
    let stack = &cx.w.calls.0[l];
    let frame = stack.last().map_or(code.local_bytes - STACK, |a| a.frame + code.functions[a.function].frame);
    if frame + f.frame > code.local_bytes {
        let m =
            format!("a call of `{}`, {} calls deep: the stack of {STACK} bytes is full", f.name, stack.len());
        return Err((FindingKind::LocalBounds, m));
    }
    let whole = l as u64 * u64::from(code.local_bytes);
    let at = |cx: &Cx<'_>, r: u32| cx.w.regs.d[r as usize][l];
    for (&(to, n), &from) in f.params.iter().zip(args) {
        copy(cx, whole + at(cx, from), whole + u64::from(frame + to), n);
    }
    let rets = rets.iter().map(|&r| at(cx, r)).collect();
    let w = &mut *cx.w;
    let regs = f.regs.iter().map(|&r| w.regs.lane_bits(r, l)).collect();
    let init = f.tracked.iter().map(|&t| w.init[t as usize] >> l & 1 != 0).collect();
    f.tracked.iter().for_each(|&t| w.init[t as usize] &= !(1 << l));
    for &(r, off) in &f.addresses {
        w.regs.set_lane(r, l, (i64::from(frame) + off) as u64);
    }
    w.calls.0[l].push(Activation { function, back: cx.pc + 1, frame, rets, regs, init });
    Ok(f.entry)
}

/// `ret` of a function that was called.
pub(crate) fn ret_exec(cx: &mut Cx<'_>, _: &Inst) -> Flow {
    cx.unit.effects += 1;
    let code = cx.grid.code;
    let mut targets = vec![];
    for l in lanes(cx.mask) {
        let Some(a) = cx.w.calls.0.get_mut(l).and_then(Vec::pop) else { continue };
        let f = &code.functions[a.function];
        let whole = l as u64 * u64::from(code.local_bytes);
        for (&(from, n), to) in f.rets.iter().zip(&a.rets) {
            copy(cx, whole + u64::from(a.frame + from), whole + to, n);
        }
        for (&r, v) in f.regs.iter().zip(a.regs) {
            cx.w.regs.set_lane_bits(r, l, v);
        }
        for (&t, ok) in f.tracked.iter().zip(a.init) {
            let init = &mut cx.w.init[t as usize];
            *init = *init & !(1 << l) | u32::from(ok) << l;
        }
        send(&mut targets, a.back, l);
    }
    part(cx, targets)
}

/// Copies between places in the warp's local memory.
fn copy(cx: &mut Cx<'_>, from: u64, to: u64, n: u32) {
    let (from, to, n) = (from as usize, to as usize, n as usize);
    if from.max(to) + n <= cx.w.local.len() {
        cx.w.local.copy_within(from..from + n, to);
    }
}
