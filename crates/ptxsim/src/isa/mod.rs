//! Instructions: one row of [`ROWS`] each, and one decoding function that checks modifiers and operands and picks the
//! function that executes it. To add an instruction, add a row and its function; nothing else knows opcodes.
//!
//! Decoding resolves every operand to a register index (see [`crate::regs`]) and records what is read and written,
//! which is all that the uninitialized-register analysis needs.
//!
//! Together with the machine, the memory accesses, barriers and shadows, since an instruction is a function on the state of the machine
//! that runs it ([`Cx`]), and the decoded code is part of that state.

mod arith;
mod asynch;
mod atomic;
mod bits;
mod bulk;
mod bytes;
mod call;
mod cluster;
mod compare;
mod control;
mod convert;
mod data;
mod env;
mod float;
mod half;
mod mbarrier;
mod mma;
mod ops;
mod printf;
mod stochastic;
mod tensormap;
mod tiny;
mod video;
mod warp;
mod wgmma;
mod wmma;

pub(crate) use asynch::finish_copies;
pub(crate) use bulk::Pending as BulkPending;
pub(crate) use bytes::Bytes;
pub(crate) use call::{Callee, Calls, STACK, address as function_address, ret_exec};
pub(crate) use control::{bra_exec, exit_exec, macs};
pub(crate) use env::{Addr, Env, Reloc, Special, Sym, Template};
pub(crate) use mbarrier::MbarTable;
pub(crate) use wgmma::{GroupLog, Wgmma, left_behind};

use crate::Error;
use crate::ast::{Instr, Loc, Operand, Space, Ty};
use crate::machine::Cx;
use crate::regs::{File, Reg};
use crate::report::Class;

/// Executes a decoded instruction for the lanes of `Cx::mask`.
pub(crate) type Exec = fn(&mut Cx<'_>, &Inst) -> Flow;

/// What happens to the lanes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on with the next instruction.
    Next,
    /// The lanes of `Cx::mask` go to `Inst::target`, the others on.
    Branch,
    /// Lanes go where `Cx::targets` says.
    Switch,
    /// The lanes of `Cx::mask` end.
    Exit,
    /// Not yet: other lanes of the warp must come to this instruction first (`Cx::need`).
    Gather,
    /// Not yet: try again after others have run.
    Yield,
    /// Go on with the next instruction, but let others run first.
    YieldNext,
    /// The lanes wait at barrier `Cx::barrier` and go on after this instruction when it completes.
    Barrier,
    /// Stop the launch: a check fired or a limit was met.
    Stop,
}

/// No register.
pub(crate) const NONE: u32 = u32::MAX;

/// Registers, or parts of them, to check and to mark at run time, where the static analysis could not prove them initialized.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uninit {
    /// Tracked registers read.
    pub reads: Vec<u32>,
    /// Tracked registers written.
    pub writes: Vec<u32>,
    /// What is written, part by part, with what it is made of, as which it is as initialized.
    pub parts: Option<Vec<(u32, Vec<u32>)>>,
    /// The instruction only copies `parts`.
    pub copy: bool,
    /// The instruction only computes: what it makes of undefined values is undefined, which is no harm by itself. Its guard
    /// must be initialized all the same.
    pub computes: bool,
    pub guard: Option<u32>,
    /// A shuffle: as `parts`, but lane by lane as the instruction moves values.
    pub shuffle: Vec<(u32, Vec<u32>)>,
    /// Tracked registers that an asynchronous instruction holds until its wait, to write and to read them.
    pub hold: Vec<u32>,
    pub inputs: Vec<u32>,
}

/// A decoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub exec: Exec,
    pub class: Class,
    /// Guard predicate, or [`NONE`].
    pub guard: u32,
    pub neg: bool,
    pub d: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub e: u32,
    /// Meaning is the instruction's own.
    pub flags: u32,
    /// Address offset or immediate.
    pub imm: i64,
    /// Branch target.
    pub target: u32,
    /// State space of a memory access.
    pub space: Space,
    /// Element size of a memory access in bytes.
    pub size: u8,
    /// Elements of a memory access.
    pub vec: u8,
    /// Further registers.
    pub list: Box<[u32]>,
    pub uninit: Option<Box<Uninit>>,
    pub line: u32,
    pub loc: Option<Loc>,
    /// Invented by the flattening; not counted.
    pub synthetic: bool,
}

impl Inst {
    pub fn new(exec: Exec, class: Class) -> Inst {
        Inst {
            exec,
            class,
            guard: NONE,
            neg: false,
            d: NONE,
            a: NONE,
            b: NONE,
            c: NONE,
            e: NONE,
            flags: 0,
            imm: 0,
            target: NONE,
            space: Space::Generic,
            size: 0,
            vec: 1,
            list: Box::default(),
            uninit: None,
            line: 0,
            loc: None,
            synthetic: false,
        }
    }
}

/// A row of the instruction table.
pub(crate) struct Row {
    /// The opcode with the modifiers that choose the row: `cp.async.bulk`.
    pub name: &'static str,
    /// PTX ISA section.
    pub section: &'static str,
    pub class: Class,
    pub decode: fn(&mut Dec<'_, '_>) -> Result<(), Error>,
}

macro_rules! instructions {
    ($($name:literal $section:literal $class:ident $decode:path;)*) => {
        /// Every instruction known, by opcode.
        pub(crate) static ROWS: &[Row] = &[
            $(Row { name: $name, section: $section, class: Class::$class, decode: $decode },)*
        ];
    };
}

instructions! {
    "add"        "9.7.1.1"  Integer arith::add;
    "sub"        "9.7.1.2"  Integer arith::sub;
    "mul"        "9.7.1.3"  Integer arith::mul;
    "mad"        "9.7.1.4"  Integer arith::mad;
    "mul24"      "9.7.1.5"  Integer arith::mul24;
    "mad24"      "9.7.1.6"  Integer arith::mad24;
    "sad"        "9.7.1.7"  Integer arith::sad;
    "div"        "9.7.1.8"  Integer arith::div;
    "rem"        "9.7.1.9"  Integer arith::rem;
    "abs"        "9.7.1.10" Integer arith::abs;
    "neg"        "9.7.1.11" Integer arith::neg;
    "min"        "9.7.1.12" Integer arith::min;
    "max"        "9.7.1.13" Integer arith::max;
    "popc"       "9.7.1.14" Integer bits::popc;
    "clz"        "9.7.1.15" Integer bits::clz;
    "bfind"      "9.7.1.16" Integer bits::bfind;
    "fns"        "9.7.1.17" Integer bits::fns;
    "brev"       "9.7.1.18" Logic   bits::brev;
    "bfe"        "9.7.1.19" Logic   bits::bfe;
    "bfi"        "9.7.1.20" Logic   bits::bfi;
    "szext"      "9.7.1.21" Logic   bits::szext;
    "bmsk"       "9.7.1.22" Logic   bits::bmsk;
    "dp4a"       "9.7.1.23" Integer arith::dp4a;
    "dp2a"       "9.7.1.24" Integer arith::dp2a;
    "addc"       "9.7.2.2"  Integer arith::addc;
    "subc"       "9.7.2.4"  Integer arith::subc;
    "madc"       "9.7.2.6"  Integer arith::madc;
    "testp"      "9.7.3.1"  Compare float::testp;
    "copysign"   "9.7.3.2"  Float   float::copysign;
    "fma"        "9.7.3.6"  Float   float::fma;
    "rcp"        "9.7.3.13" Special float::rcp;
    "sqrt"       "9.7.3.15" Special float::sqrt;
    "rsqrt"      "9.7.3.16" Special float::rsqrt;
    "sin"        "9.7.3.18" Special float::sin;
    "cos"        "9.7.3.19" Special float::cos;
    "lg2"        "9.7.3.20" Special float::lg2;
    "ex2"        "9.7.3.21" Special float::ex2;
    "tanh"       "9.7.3.22" Special float::tanh;
    "set"        "9.7.6.1"  Compare compare::set;
    "setp"       "9.7.6.2"  Compare compare::setp;
    "selp"       "9.7.6.3"  Compare compare::selp;
    "slct"       "9.7.6.4"  Compare compare::slct;
    "and"        "9.7.8.1"  Logic   bits::and;
    "or"         "9.7.8.2"  Logic   bits::or;
    "xor"        "9.7.8.3"  Logic   bits::xor;
    "not"        "9.7.8.4"  Logic   bits::not;
    "cnot"       "9.7.8.5"  Logic   bits::cnot;
    "lop3"       "9.7.8.6"  Logic   bits::lop3;
    "shf"        "9.7.8.7"  Logic   bits::shf;
    "shl"        "9.7.8.8"  Logic   bits::shl;
    "shr"        "9.7.8.9"  Logic   bits::shr;
    "mov"        "9.7.9.3"  Move    data::mov;
    "shfl"       "9.7.9.6"  Warp    warp::shfl;
    "prmt"       "9.7.9.7"  Logic   bits::prmt;
    "ld"         "9.7.9.8"  Load    data::ld;
    "ldu"        "9.7.9.10" Load    data::ld;
    "st"         "9.7.9.11" Store   data::st;
    "st.async"   "9.7.9.12" Async   cluster::st_async;
    "prefetch"   "9.7.9.15" Other   data::prefetch;
    "prefetchu"  "9.7.9.15" Other   data::prefetch;
    "applypriority" "9.7.9.16" Other data::prefetch;
    "discard"    "9.7.9.17" Other   data::prefetch;
    "createpolicy" "9.7.9.18" Other data::createpolicy;
    "isspacep"   "9.7.9.19" Move    data::isspacep;
    "cvta"       "9.7.9.20" Move    data::cvta;
    "cvt"        "9.7.9.21" Convert convert::cvt;
    "cvt.pack"   "9.7.9.22" Convert convert::cvt_pack;
    "mapa"       "9.7.9.23" Move    cluster::mapa;
    "getctarank" "9.7.9.24" Move    cluster::getctarank;
    "cp.async"   "9.7.9.25.3.1" Async asynch::cp_async;
    "cp.async.commit_group" "9.7.9.25.3.2" Async asynch::commit_group;
    "cp.async.wait_group" "9.7.9.25.3.3" Async asynch::wait_group;
    "cp.async.wait_all" "9.7.9.25.3.3" Async asynch::wait_all;
    "cp.async.bulk" "9.7.9.25.4.1" Async bulk::copy;
    "cp.reduce.async.bulk" "9.7.9.25.4.2" Async bulk::reduce_bulk;
    "cp.async.bulk.prefetch" "9.7.9.25.4.3" Async bulk::prefetch;
    "cp.async.bulk.tensor" "9.7.9.25.5.2" Async bulk::copy_tensor;
    "cp.reduce.async.bulk.tensor" "9.7.9.25.5.3" Async bulk::reduce_tensor;
    "cp.async.bulk.prefetch.tensor" "9.7.9.25.5.4" Async bulk::prefetch;
    "cp.async.bulk.commit_group" "9.7.9.25.6.1" Async bulk::commit;
    "cp.async.bulk.wait_group" "9.7.9.25.6.2" Async bulk::wait;
    "cp.async.mbarrier.arrive" "9.7.13.15.17" Async mbarrier::cp_async_arrive;
    "bra"        "9.7.12.3" Control control::bra;
    "brx.idx"    "9.7.12.4" Control control::brx;
    "call"       "9.7.12.5" Control call::call;
    "ret"        "9.7.12.6" Control control::exit;
    "exit"       "9.7.12.7" Control control::exit;
    "bar"        "9.7.13.1" Barrier control::bar;
    "barrier"    "9.7.13.1" Barrier control::bar;
    "bar.warp.sync" "9.7.13.2" Barrier warp::bar_warp_sync;
    "barrier.cluster" "9.7.13.3" Barrier cluster::barrier_cluster;
    "membar"     "9.7.13.4" Barrier control::fence;
    "fence"      "9.7.13.4" Barrier control::fence;
    "atom"       "9.7.13.5" Atomic  atomic::atom;
    "red"        "9.7.13.6" Atomic  atomic::red;
    "red.async"  "9.7.13.7" Async   cluster::red_async;
    "vote"       "9.7.13.9" Warp    warp::vote;
    "match"      "9.7.13.10" Warp   warp::matches;
    "activemask" "9.7.13.11" Warp   warp::activemask;
    "redux"      "9.7.13.12" Warp   warp::redux;
    "griddepcontrol" "9.7.13.13" Control control::griddepcontrol;
    "elect"      "9.7.13.14" Warp   warp::elect;
    "tensormap.replace" "9.7.13.8" Other tensormap::replace;
    "tensormap.cp_fenceproxy" "9.7.13.15.19" Other tensormap::copy;
    "mbarrier.init" "9.7.13.15.9" Barrier mbarrier::init;
    "mbarrier.inval" "9.7.13.15.10" Barrier mbarrier::inval;
    "mbarrier.expect_tx" "9.7.13.15.11" Barrier mbarrier::expect_tx;
    "mbarrier.complete_tx" "9.7.13.15.12" Barrier mbarrier::complete_tx;
    "mbarrier.arrive" "9.7.13.15.13" Barrier mbarrier::arrive;
    "mbarrier.arrive_drop" "9.7.13.15.14" Barrier mbarrier::arrive_drop;
    "mbarrier.test_wait" "9.7.13.15.16" Barrier mbarrier::test_wait;
    "mbarrier.try_wait" "9.7.13.15.16" Barrier mbarrier::try_wait;
    "mbarrier.pending_count" "9.7.13.15.15" Barrier mbarrier::pending_count;
    "wmma.load"  "9.7.14.4.3" Tensor wmma::load;
    "wmma.store" "9.7.14.4.4" Tensor wmma::store;
    "wmma.mma"   "9.7.14.4.5" Tensor wmma::mma;
    "mma"        "9.7.14.5" Tensor  mma::mma;
    "ldmatrix"   "9.7.14.5.15" Tensor mma::ldmatrix;
    "stmatrix"   "9.7.14.5.16" Tensor mma::stmatrix;
    "movmatrix"  "9.7.14.5.17" Tensor mma::movmatrix;
    "wgmma.mma_async" "9.7.15.5" Tensor wgmma::mma;
    "wgmma.fence" "9.7.15.7.1" Async wgmma::fence;
    "wgmma.commit_group" "9.7.15.7.2" Async wgmma::commit;
    "wgmma.wait_group" "9.7.15.7.3" Async wgmma::wait;
    "vadd2" "9.7.18" Integer video::video;
    "vadd4" "9.7.18" Integer video::video;
    "vsub2" "9.7.18" Integer video::video;
    "vsub4" "9.7.18" Integer video::video;
    "vavrg2" "9.7.18" Integer video::video;
    "vavrg4" "9.7.18" Integer video::video;
    "vabsdiff" "9.7.18" Integer video::absolute_difference;
    "vabsdiff2" "9.7.18" Integer video::video;
    "vabsdiff4" "9.7.18" Integer video::video;
    "vmin2" "9.7.18" Integer video::video;
    "vmin4" "9.7.18" Integer video::video;
    "vmax2" "9.7.18" Integer video::video;
    "vmax4" "9.7.18" Integer video::video;
    "vset2" "9.7.18" Compare video::compare;
    "vset4" "9.7.18" Compare video::compare;
    "nanosleep"  "9.7.19.1" Control control::nanosleep;
    "brkpt"      "9.7.19.2" Control control::nop;
    "pmevent"    "9.7.19.3" Control control::nop;
    "trap"       "9.7.19.4" Control control::trap;
    "setmaxnreg" "9.7.19.5" Control wgmma::setmaxnreg;
    // In comments of ours only.
    "tilewright.below" "9.7.19" Control control::below;
}

/// Types of the ISA that no instruction here takes (§5.2.3).
static FOREIGN_TYPES: &[&str] = &[
    "e2m1", "e2m3", "e3m2", "ue4m3", "ue8m0", "e2m1x2", "e2m3x2", "e3m2x2", "s2f6x2", "ue8m0x2", "e2m1x4",
    "e2m3x4", "e3m2x4", "e4m3x4", "e5m2x4", "s8x4", "u8x4",
];

/// Opcodes of the ISA that have no row, with their sections, so that the message can say where to read.
static KNOWN: &[(&str, &str)] = &[
    ("tex", "9.7.10.3"),
    ("tld4", "9.7.10.4"),
    ("txq", "9.7.10.5"),
    ("istypep", "9.7.10.6"),
    ("suld", "9.7.11.1"),
    ("sust", "9.7.11.2"),
    ("sured", "9.7.11.3"),
    ("suq", "9.7.11.4"),
    ("alloca", "9.7.17.3"),
    ("stacksave", "9.7.17.1"),
    ("stackrestore", "9.7.17.2"),
    ("tcgen05", "9.7.16"),
    ("multimem", "9.7.9.13"),
    ("vadd", "9.7.18"),
    ("vsub", "9.7.18"),
    ("vmin", "9.7.18"),
    ("vmax", "9.7.18"),
    ("vset", "9.7.18"),
    ("vmad", "9.7.18"),
    ("vshl", "9.7.18"),
    ("vshr", "9.7.18"),
];

/// The row for an instruction: the longest of its dotted prefixes that the table has.
fn row(ins: &Instr) -> Result<(&'static Row, usize), Error> {
    let mut name = ins.name();
    let mut mods = ins.mods.len();
    loop {
        if let Some(r) = table().get(name.as_str()) {
            return Ok((r, mods));
        }
        if mods == 0 {
            break;
        }
        mods -= 1;
        name.truncate(name.len() - ins.mods[mods].len() - 1);
    }
    let section = KNOWN.iter().find(|k| k.0 == ins.op).map_or("9.7", |k| k.1);
    let known = if section == "9.7" { "unknown instruction" } else { "not supported yet: instruction" };
    Err(Error::at(ins.line, format!("{known} `{}` (PTX ISA §{section})", ins.name())))
}

fn table() -> &'static std::collections::HashMap<&'static str, &'static Row> {
    static MAP: std::sync::OnceLock<std::collections::HashMap<&'static str, &'static Row>> =
        std::sync::OnceLock::new();
    MAP.get_or_init(|| ROWS.iter().map(|r| (r.name, r)).collect())
}

/// The decoding of one instruction: its modifiers and operands are taken one by one, and what is left over at the end
/// is an error.
pub(crate) struct Dec<'a, 'e> {
    pub ins: &'a Instr,
    pub env: &'e mut Env,
    pub out: Inst,
    section: &'static str,
    mods: Vec<(&'a str, bool)>,
    pub reads: Vec<Reg>,
    pub writes: Vec<Reg>,
    /// The result is a copy of the sources.
    pub copy: bool,
    /// What a shuffle moves: destination and source.
    pub shuffle: Option<(Reg, Reg)>,
    /// Registers that an asynchronous instruction writes, and reads, until a wait.
    pub held: Vec<Reg>,
    pub inputs: Vec<Reg>,
}

/// A decoded instruction with what it reads and writes.
pub(crate) struct Decoded {
    pub inst: Inst,
    /// What each byte of its result is made of, where that is known.
    pub bytes: Option<Bytes>,
    /// It computes, or shuffles: see [`Uninit`].
    pub computes: bool,
    /// What a shuffle moves: destination and source.
    pub shuffle: Option<(Reg, Reg)>,
    pub reads: Vec<Reg>,
    pub writes: Vec<Reg>,
    pub copy: bool,
    pub held: Vec<Reg>,
    pub inputs: Vec<Reg>,
}

/// Decodes `ins` in `env`.
pub(crate) fn decode(ins: &Instr, env: &mut Env) -> Result<Decoded, Error> {
    let (row, used) = row(ins)?;
    // The modifiers that named the row are spent.
    let named = row.name.matches('.').count();
    debug_assert!(named <= used);
    let mut d = Dec {
        ins,
        env,
        out: Inst::new(control::nop_exec, row.class),
        section: row.section,
        mods: ins.mods.iter().enumerate().map(|(k, m)| (m.as_str(), k < named)).collect(),
        reads: vec![],
        writes: vec![],
        copy: false,
        shuffle: None,
        held: vec![],
        inputs: vec![],
    };
    d.out.line = ins.line;
    d.out.loc = ins.loc;
    if let Some((name, neg)) = &ins.guard {
        let r = d.reg(name)?;
        if r.file != File::P {
            return d.fail(format!("the guard `{name}` is not a predicate"));
        }
        d.reads.push(r);
        d.out.guard = r.idx;
        d.out.neg = *neg;
    }
    (row.decode)(&mut d)?;
    d.finish()?;
    use Class::*;
    let computes =
        matches!(row.class, Integer | Logic | Float | Half | Double | Special | Convert | Compare | Move);
    let bytes = if computes && !d.copy { bytes::bytes(&d) } else { None };
    Ok(Decoded {
        inst: d.out,
        bytes,
        computes,
        shuffle: d.shuffle,
        reads: d.reads,
        writes: d.writes,
        copy: d.copy,
        held: d.held,
        inputs: d.inputs,
    })
}

impl<'a> Dec<'a, '_> {
    /// An error about this instruction.
    pub fn error(&self, what: impl std::fmt::Display) -> Error {
        Error::at(self.ins.line, format!("{what} in `{}` (PTX ISA §{})", self.ins.name(), self.section))
    }
    pub fn fail<T>(&self, what: impl std::fmt::Display) -> Result<T, Error> {
        Err(self.error(what))
    }

    fn finish(&self) -> Result<(), Error> {
        match self.mods.iter().find(|m| !m.1) {
            Some((m, _)) => self.fail(format!("not supported yet: modifier `.{m}`")),
            None => Ok(()),
        }
    }

    /// Takes modifier `m` if it is there.
    pub fn has(&mut self, m: &str) -> bool {
        match self.mods.iter_mut().find(|x| !x.1 && x.0 == m) {
            Some(x) => {
                x.1 = true;
                true
            }
            None => false,
        }
    }

    /// Takes the first of `options` that is there.
    pub fn one_of<T: Copy>(&mut self, options: &[(&str, T)]) -> Option<T> {
        options.iter().find(|o| self.has(o.0)).map(|o| o.1)
    }

    /// Takes the first modifier that `f` accepts.
    pub fn take<T>(&mut self, f: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for x in &mut self.mods {
            if !x.1
                && let Some(v) = f(x.0)
            {
                x.1 = true;
                return Some(v);
            }
        }
        None
    }

    /// Takes the next type modifier.
    pub fn ty(&mut self) -> Result<Ty, Error> {
        if let Some(t) = self.take(Ty::parse) {
            return Ok(t);
        }
        match self.take(|m| FOREIGN_TYPES.contains(&m).then_some(m)) {
            Some(t) => self.fail(format!("not supported yet: type `{t}`")),
            None => self.fail("a type modifier is missing"),
        }
    }

    pub fn count(&self, n: std::ops::RangeInclusive<usize>) -> Result<(), Error> {
        let have = self.ins.operands.len();
        if n.contains(&have) {
            return Ok(());
        }
        let want = if n.start() == n.end() {
            n.start().to_string()
        } else {
            format!("{} to {}", n.start(), n.end())
        };
        self.fail(format!("{have} operands where {want} are wanted"))
    }

    pub fn operand(&self, k: usize) -> Result<&'a Operand, Error> {
        match self.ins.operands.get(k) {
            Some(o) => Ok(o),
            None => self.fail(format!("operand {} is missing", k + 1)),
        }
    }

    /// The register called `name`.
    pub fn reg(&self, name: &str) -> Result<Reg, Error> {
        match self.env.lookup(name) {
            Some(Sym::Reg(r)) => Ok(r),
            _ => self.fail(format!("`{name}` is not a declared register")),
        }
    }

    /// A destination of any width; a sink when `_`.
    pub fn dst_reg(&mut self, op: &Operand, sink: File) -> Result<Reg, Error> {
        let r = match op {
            Operand::Sink => Reg { file: sink, idx: self.env.sink(sink) },
            Operand::Ident(n) => self.reg(n)?,
            Operand::Component(n, c) => match self.env.component(n, *c) {
                Some(r) => r,
                None => return self.fail(format!("`{n}.{c}` is not a register")),
            },
            _ => return self.fail("a destination is not a register"),
        };
        self.writes.push(r);
        Ok(r)
    }

    /// Destination operand `k`, which must lie in `file`.
    pub fn dst(&mut self, k: usize, file: File) -> Result<u32, Error> {
        let op = self.operand(k)?;
        self.dst_op(op, file)
    }

    pub fn dst_op(&mut self, op: &Operand, file: File) -> Result<u32, Error> {
        let r = self.dst_reg(op, file)?;
        if r.file != file {
            return self.fail(format!(
                "destination `{}` has {} bits where {} are wanted",
                name(op),
                r.file.bits(),
                file.bits()
            ));
        }
        Ok(r.idx)
    }

    /// Destination `k` of type `ty`.
    pub fn dst_ty(&mut self, k: usize, ty: Ty) -> Result<u32, Error> {
        self.dst(k, File::of(ty.bits()))
    }

    /// Source operand `k` as a `ty`.
    pub fn src(&mut self, k: usize, ty: Ty) -> Result<u32, Error> {
        let op = self.operand(k)?;
        self.src_op(op, ty)
    }

    pub fn src_op(&mut self, op: &Operand, ty: Ty) -> Result<u32, Error> {
        let file = File::of(ty.bits());
        if let Some(r) = self.source_reg(op)? {
            if r.file == file {
                return Ok(r.idx);
            }
            return self.fail(format!(
                "operand `{}` has {} bits where {} are wanted",
                name(op),
                r.file.bits(),
                file.bits()
            ));
        }
        self.constant(op, ty)
    }

    /// A register operand of any width, or `None` when it is a constant or an address.
    pub fn source_reg(&mut self, op: &Operand) -> Result<Option<Reg>, Error> {
        let r = match op {
            Operand::Ident(n) => match self.env.lookup(n) {
                Some(Sym::Reg(r)) => Some(r),
                Some(_) => None,
                None if n.starts_with('%') || n == "WARP_SZ" => self.env.special(n, None),
                None => return self.fail(format!("`{n}` is not declared")),
            },
            Operand::Component(n, c) => {
                match self.env.component(n, *c).or_else(|| self.env.special(n, Some(*c))) {
                    Some(r) => Some(r),
                    None => return self.fail(format!("`{n}.{c}` is not a register")),
                }
            }
            _ => None,
        };
        if let Some(r) = r {
            self.reads.push(r);
        } else if let Operand::Ident(n) = op
            && n.starts_with('%')
        {
            return self.fail(format!("`{n}` is not a declared register"));
        }
        Ok(r)
    }

    /// A constant operand, in a register filled with it.
    fn constant(&mut self, op: &Operand, ty: Ty) -> Result<u32, Error> {
        let file = File::of(ty.bits());
        let bits: u64 = match op {
            Operand::Int(v) if ty.float() && ty != Ty::F16x2 && ty != Ty::BF16x2 => match ty {
                // An integer literal where a float is wanted appears for bit patterns of 16 bits.
                Ty::F16 | Ty::BF16 => *v,
                Ty::F32 => u64::from((*v as i64 as f32).to_bits()),
                _ => (*v as i64 as f64).to_bits(),
            },
            Operand::Int(v) => *v,
            Operand::F32(_) | Operand::F64(_) if ty.bits() < 32 => {
                return self
                    .fail("a floating constant where 16 bits are wanted: write their pattern as an integer");
            }
            Operand::F32(b) => match ty {
                Ty::F64 => f64::from(f32::from_bits(*b)).to_bits(),
                _ => (*b).into(),
            },
            Operand::F64(b) => match ty.bits() {
                64 => *b,
                32 => u64::from((f64::from_bits(*b) as f32).to_bits()),
                _ => return self.fail("a floating constant where an integer is wanted"),
            },
            Operand::Ident(n) => return self.address_const(n, 0, file),
            Operand::Offset(n, o) => return self.address_const(n, *o, file),
            _ => return self.fail(format!("operand `{}` is not a register or a constant", name(op))),
        };
        Ok(self.env.constant(file, bits.into()))
    }

    /// The address of a variable, as a constant.
    fn address_const(&mut self, n: &str, off: i64, file: File) -> Result<u32, Error> {
        match self.env.lookup(n) {
            Some(Sym::Var(Addr::Global(_) | Addr::Param(_) | Addr::Frame(..))) if file != File::D => {
                self.fail(format!("the address of `{n}` needs 64 bits"))
            }
            Some(Sym::Var(a)) => Ok(self.env.address(file, a, off)),
            Some(Sym::Label) => self.fail(format!("not supported yet: the address of label `{n}`")),
            Some(Sym::Func(k, true)) if file == File::D => {
                Ok(self.env.constant(file, u128::from(call::address(k).wrapping_add(off as u64))))
            }
            Some(Sym::Func(..)) => self.fail(format!("`{n}` has no address of this size: it is a function")),
            _ => self.fail(format!("`{n}` is not a variable")),
        }
    }

    /// A predicate source and whether it is negated.
    pub fn pred(&mut self, k: usize) -> Result<(u32, bool), Error> {
        let op = self.operand(k)?;
        self.pred_op(op)
    }

    pub fn pred_op(&mut self, op: &Operand) -> Result<(u32, bool), Error> {
        let (op, neg) = match op {
            Operand::Not(o) => (&**o, true),
            o => (o, false),
        };
        if let Operand::Int(v) = op {
            return Ok((self.env.constant(File::P, u128::from(*v != 0)), neg));
        }
        match self.source_reg(op)? {
            Some(r) if r.file == File::P => Ok((r.idx, neg)),
            _ => self.fail(format!("`{}` is not a predicate", name(op))),
        }
    }

    /// Memory operand `k`: sets `a` (a 64-bit address register), `imm` and, for a generic access to a variable,
    /// the space.
    pub fn mem(&mut self, k: usize, space: Space) -> Result<(u32, i64, Space), Error> {
        let op = self.operand(k)?;
        let Operand::Mem { base, offset, .. } = op else {
            return self.fail(format!("operand {} is not an address in brackets", k + 1));
        };
        self.mem_op(base, *offset, space)
    }

    pub fn mem_op(&mut self, base: &Operand, offset: i64, space: Space) -> Result<(u32, i64, Space), Error> {
        match base {
            Operand::Ident(n) if matches!(self.env.lookup(n), Some(Sym::Var(_))) => {
                let Some(Sym::Var(a)) = self.env.lookup(n) else { unreachable!("just matched") };
                let in_space = match a {
                    Addr::Global(_) => Space::Global,
                    Addr::Shared(_) => Space::Shared,
                    Addr::Local(_) | Addr::Frame(..) => Space::Local,
                    Addr::Param(_) => Space::Param,
                };
                let space = match (space, in_space) {
                    (Space::Generic, s) => s,
                    (Space::Const, Space::Global) | (Space::Global, Space::Global) => space,
                    (Space::Param, Space::Local) => Space::Local,
                    (Space::SharedCluster, Space::Shared) => Space::Shared,
                    (a, b) if a == b => a,
                    _ => return self.fail(format!("`{n}` is not in the space that the instruction names")),
                };
                let r = self.env.address(File::D, a, 0);
                Ok((r, offset, space))
            }
            Operand::Int(v) => Ok((self.env.constant(File::D, u128::from(*v)), offset, space)),
            _ => match self.source_reg(base)? {
                Some(Reg { file: File::D, idx }) => Ok((idx, offset, space)),
                Some(Reg { file: File::W, idx }) => {
                    // 32-bit addresses (shared memory mostly) are widened by the access.
                    self.out.flags |= NARROW_ADDRESS;
                    Ok((idx, offset, space))
                }
                _ => self.fail(format!("`{}` is not an address", name(base))),
            },
        }
    }

    /// Takes a state-space modifier.
    pub fn space(&mut self) -> Space {
        self.take(space_of).unwrap_or(Space::Generic)
    }
}

/// In [`Inst::flags`] of memory instructions: the address register is 32 bits wide.
pub(crate) const NARROW_ADDRESS: u32 = 1 << 31;

pub(crate) fn space_of(m: &str) -> Option<Space> {
    Some(match m {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::SharedCluster,
        "local" => Space::Local,
        "const" => Space::Const,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// An operand as a name, for messages.
fn name(op: &Operand) -> String {
    match op {
        Operand::Ident(n) => n.clone(),
        Operand::Component(n, c) => format!("{n}.{c}"),
        Operand::Int(v) => v.to_string(),
        Operand::F32(b) => f32::from_bits(*b).to_string(),
        Operand::F64(b) => f64::from_bits(*b).to_string(),
        Operand::Not(o) => format!("!{}", name(o)),
        Operand::Offset(n, o) => format!("{n}+{o}"),
        Operand::Mem { .. } => "[address]".into(),
        Operand::Vector(_) => "{vector}".into(),
        Operand::Pair(..) => "a|b".into(),
        Operand::List(_) => "(list)".into(),
        Operand::Sink => "_".into(),
    }
}
