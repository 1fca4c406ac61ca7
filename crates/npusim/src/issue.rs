//! The scalar unit of a core: it computes addresses and extents, runs loops, and issues everything else to the queues.
//!
//! Where it has to wait it stops with what it has come to, and goes on when the other cores' scalar units had their turn.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;
use tilewright_ir::ascend;
use tilewright_ir::dialect::hivm::{self, CoreType as Kind, Event, Kind as H, Pipe, SyncBlockInstrMode};
use tilewright_ir::dialect::{arith, func, hivm_more, memref, scf};
use tilewright_ir::memref::{Index, MemRef, index_list};
use tilewright_ir::{AttrKind, Block, Diagnostic, Module, Op, Opcode, Region, Trait, Type, Value, fold};

use crate::compute::{Num, Operand, View};
use crate::queues::{Action, Core, Flag, PIPES, Queue, Queues, at};
use crate::{Arg, Launch, Report, supported};

/// A program of a launch, on the cores that its kernel has parts for.
pub struct Program<'m> {
    m: &'m Module,
    number: u64,
    units: Vec<Unit<'m>>,
    /// The queues of its block.
    pub queues: Queues,
}

/// How far a program has come.
pub enum Come {
    /// To its end.
    End(Report),
    /// To where all programs wait for each other.
    Meeting,
}

/// What programs of a launch have in common.
#[derive(Clone, Copy)]
pub struct Common<'m> {
    /// The kernel's module.
    pub m: &'m Module,
    /// What the types of views say.
    pub views: &'m FxHashMap<Type, MemRef>,
    /// The functions, one for each core.
    pub parts: &'m [(Core, func::Func)],
    /// The buffer of global memory that is the workspace, if there is one.
    pub workspace: Option<usize>,
    /// Whether nobody wants the result any more.
    pub interrupt: &'m AtomicBool,
}

impl<'m> Program<'m> {
    /// A program at its beginning.
    ///
    /// # Errors
    /// Arguments that do not fit the kernel.
    pub fn new(common: Common<'m>, launch: &Launch, number: u64) -> Result<Program<'m>> {
        let Common { m, views, parts, workspace, interrupt } = common;
        let given = launch.args.iter().copied().chain(launch.grid.map(|n| Arg::Int(i64::from(n))));
        let given: Vec<Arg> = given.collect();
        let mut units: Vec<Unit<'m>> = Vec::new();
        for &(core, function) in parts {
            let mut unit = Unit {
                m,
                views,
                values: FxHashMap::default(),
                core,
                others: parts.iter().map(|&(c, _)| c).filter(|c| c.kind != core.kind).collect(),
                number,
                frames: Vec::new(),
                waiting: None,
                locked: false,
                interrupt,
            };
            unit.enter(function, &given, workspace, &launch.memory)?;
            units.push(unit);
        }
        Ok(Program { m, number, units, queues: Queues::new(workspace) })
    }

    /// Runs to the end, or to where programs wait for each other, on global memory that is the program's meanwhile.
    ///
    /// # Errors
    /// A broken rule; an operation that is not supported.
    pub fn go_on(&mut self, memory: &mut Vec<Vec<u8>>) -> Result<Come> {
        std::mem::swap(&mut self.queues.memories.global, memory);
        let come = self.run();
        std::mem::swap(&mut self.queues.memories.global, memory);
        come
    }

    fn run(&mut self) -> Result<Come> {
        let (m, queues) = (self.m, &mut self.queues);
        loop {
            let before = queues.performed;
            let mut moved = false;
            for unit in &mut self.units {
                moved |= unit.go_on(queues)?;
            }
            if self.units.iter().all(|unit| unit.frames.is_empty()) {
                if self.units.iter().any(|unit| unit.locked) {
                    return Err(Diagnostic::new("a program ends with a lock that it has not given back"));
                }
                return queues.end(m).map(Come::End);
            }
            if moved || queues.performed != before {
                continue;
            }
            // (A cube core waits for the vector cores, if for anything.)
            let meets = |unit: &Unit<'_>| matches!(unit.waiting, Some(Waiting::Programs(_)));
            let mut vectors = self.units.iter().filter(|unit| unit.core.kind == Kind::Vector).peekable();
            if vectors.peek().is_some() && vectors.all(meets) {
                return Ok(Come::Meeting);
            }
            let stuck = queues.deadlock(m);
            return Err(stuck.unwrap_or_else(|| Diagnostic::new("deadlock: a barrier never ends")));
        }
    }

    /// All programs have come to where they wait for each other.
    pub fn met(&mut self) {
        for unit in &mut self.units {
            if matches!(unit.waiting, Some(Waiting::Programs(_))) {
                unit.waiting = None;
            }
        }
    }

    /// The error about a program that waits for others, of which one has ended.
    pub fn left_alone(&self, ended: u64) -> Diagnostic {
        let text =
            format!("deadlock: program {} waits for all others, and program {ended} has ended", self.number);
        let waits = self.units.iter().find_map(|unit| match unit.waiting {
            Some(Waiting::Programs(op)) => Some(op),
            _ => None,
        });
        match waits {
            Some(op) => at(self.m, op, text),
            None => Diagnostic::new(text),
        }
    }
}

/// What the types of all views of functions say.
pub fn all_views(m: &mut Module, parts: &[(Core, func::Func)]) -> FxHashMap<Type, MemRef> {
    let mut views = FxHashMap::default();
    for (_, function) in parts {
        views.extend(views_of(m, function.0));
    }
    views
}

/// What the types of all views of a function say.
fn views_of(m: &mut Module, function: Op) -> FxHashMap<Type, MemRef> {
    let mut values = Vec::new();
    for op in m.all_ops(function) {
        values.extend(m.results(op));
        for &region in m.regions(op) {
            values.extend(m.region_blocks(region).iter().flat_map(|&b| m.block_args(b).to_vec()));
        }
    }
    let mut views = FxHashMap::default();
    for v in values {
        if let Some(view) = MemRef::of(m, v) {
            views.insert(m.value_type(v), view);
        }
    }
    views
}

#[derive(Debug, Clone)]
enum Cell {
    Num(Num),
    View(View),
}

/// A block that is gone through.
struct Frame {
    ops: Vec<Op>,
    next: usize,
    of: Around,
}

/// What a block is in.
enum Around {
    Function,
    /// The loop, its counter, and where and by what that goes on.
    For(scf::For, i64, i64, i64),
    If(scf::If),
    /// The condition of a loop.
    Condition(scf::While),
    /// An iteration of one that has a condition.
    While(scf::While),
}

/// What a scalar unit waits for.
enum Waiting {
    /// A flag.
    Flag,
    /// All queues of its core.
    Queues,
    /// All other programs, at this operation.
    Programs(Op),
}

struct Unit<'m> {
    m: &'m Module,
    views: &'m FxHashMap<Type, MemRef>,
    values: FxHashMap<Value, Cell>,
    core: Core,
    /// The cores of the other kind that the kernel runs on.
    others: Vec<Core>,
    number: u64,
    frames: Vec<Frame>,
    waiting: Option<Waiting>,
    /// Whether it has the lock.
    locked: bool,
    /// Whether nobody wants the result any more.
    interrupt: &'m AtomicBool,
}

type Result<T> = std::result::Result<T, Diagnostic>;

impl Unit<'_> {
    /// Begins a function with its arguments.
    fn enter(
        &mut self,
        function: func::Func,
        given: &[Arg],
        workspace: Option<usize>,
        memory: &[Vec<u8>],
    ) -> Result<()> {
        let entry = self.m.region_block(function.body(self.m));
        let params = self.m.block_args(entry).to_vec();
        let kinds = arg_types(self.m, function.0, params.len());
        if kinds.iter().filter(|kind| kind.is_empty()).count() != given.len() {
            let text = format!(
                "{} arguments with the grid for a function of {} parameters",
                given.len(),
                params.len()
            );
            return Err(Diagnostic::new(text));
        }
        let mut given = given.iter();
        for (&param, kind) in params.iter().zip(kinds) {
            let arg = match (kind.as_str(), workspace) {
                ("", _) => *given.next().unwrap_or(&Arg::Int(0)),
                ("workspace", Some(buffer)) => Arg::Pointer(buffer, 0),
                ("ffts_base_address", _) => Arg::Int(0),
                (kind, _) => {
                    return Err(Diagnostic::new(format!(
                        "not supported yet: an argument of kind {kind} in npusim"
                    )));
                }
            };
            let cell = match arg {
                Arg::Pointer(buffer, bytes) => {
                    let size = memory.get(buffer).map_or(0, Vec::len) as i64;
                    let mut view = self.view_of(param, function.0)?;
                    view.buffer = buffer;
                    view.base = bytes as i64;
                    view.shape = vec![(size - bytes as i64) / view.bytes];
                    view.strides = vec![1];
                    Cell::View(view)
                }
                Arg::Int(n) => Cell::Num(Num::Int(n).rounded(self.m, self.m.value_type(param))),
                Arg::Bits(bits) => Cell::Num(Num::of_bits(self.m, self.m.value_type(param), bits)),
                Arg::Float(f) => Cell::Num(Num::Float(f).rounded(self.m, self.m.value_type(param))),
            };
            self.values.insert(param, cell);
        }
        self.push(entry, Around::Function);
        Ok(())
    }

    fn push(&mut self, block: Block, of: Around) {
        self.frames.push(Frame { ops: self.m.block_ops(block).collect(), next: 0, of });
    }

    fn queue(&self, pipe: Pipe) -> Queue {
        Queue { core: self.core, pipe }
    }

    /// Goes on until the program is at its end, or something must be waited for; whether it came any further.
    fn go_on(&mut self, queues: &mut Queues) -> Result<bool> {
        let mut moved = false;
        loop {
            match self.waiting {
                Some(Waiting::Flag) if !queues.scalar_is_free(self.m, self.core)? => return Ok(moved),
                Some(Waiting::Queues) if !queues.drained(self.m, self.core)? => return Ok(moved),
                Some(Waiting::Programs(_)) => return Ok(moved),
                _ => self.waiting = None,
            }
            let Some(frame) = self.frames.last_mut() else { return Ok(moved) };
            moved = true;
            match frame.ops.get(frame.next).copied() {
                Some(op) if !self.m.has_trait(op, Trait::Terminator) => {
                    frame.next += 1;
                    self.op(op, queues)?;
                }
                end => {
                    if self.interrupt.load(Ordering::Relaxed) {
                        return Err(Diagnostic::new("interrupted"));
                    }
                    self.leave(end)?;
                }
            }
        }
    }

    /// What comes behind a block.
    fn leave(&mut self, end: Option<Op>) -> Result<()> {
        let operands = end.map_or(&[][..], |end| self.m.operands(end));
        let given: Vec<Cell> = operands.iter().filter_map(|v| self.values.get(v).cloned()).collect();
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        match frame.of {
            Around::Function => {}
            Around::For(looped, i, upper, step) => {
                self.iteration(looped, (i.saturating_add(step), upper, step), given)
            }
            Around::If(branch) => self.hand_on(branch.0, given),
            Around::While(repeated) => self.condition(repeated, given),
            Around::Condition(repeated) => {
                let holds = operands.first().map_or(Ok(0), |&v| self.int(v))? != 0;
                let given = given.into_iter().skip(1).collect();
                match holds {
                    false => self.hand_on(repeated.0, given),
                    true => self.begin(repeated.after(self.m), given, Around::While(repeated)),
                }
            }
        }
        Ok(())
    }

    /// Comes to the condition of a loop.
    fn condition(&mut self, repeated: scf::While, carried: Vec<Cell>) {
        self.begin(repeated.before(self.m), carried, Around::Condition(repeated));
    }

    /// Begins the block of a region with its arguments.
    fn begin(&mut self, region: Region, given: Vec<Cell>, of: Around) {
        let block = self.m.region_block(region);
        let args = self.m.block_args(block).to_vec();
        self.values.extend(args.into_iter().zip(given));
        self.push(block, of);
    }

    fn hand_on(&mut self, op: Op, given: Vec<Cell>) {
        for (&result, cell) in self.m.results(op).iter().zip(given) {
            self.values.insert(result, cell);
        }
    }

    fn op(&mut self, op: Op, queues: &mut Queues) -> Result<()> {
        match self.m.opcode(op) {
            Some(Opcode::Arith(kind)) => self.arith(op, kind),
            Some(Opcode::Scf(scf::Kind::For)) => self.looped(scf::For(op)),
            Some(Opcode::Scf(scf::Kind::If)) => self.branch(scf::If(op)),
            Some(Opcode::Scf(scf::Kind::While)) => {
                let repeated = scf::While(op);
                let init = repeated.init(self.m).iter().filter_map(|v| self.values.get(v).cloned()).collect();
                self.condition(repeated, init);
                Ok(())
            }
            Some(Opcode::Memref(kind)) => self.memref(op, kind, queues),
            Some(Opcode::Hivm(kind)) => self.hivm(op, kind, queues),
            Some(Opcode::HivmMore(kind)) => self.lock(op, kind, queues),
            _ => Err(self.unsupported(op)),
        }
    }

    fn unsupported(&self, op: Op) -> Diagnostic {
        Diagnostic::unsupported(self.m, self.m.op_loc(op), format!("`{}` in npusim", self.m.op_name(op)))
    }

    /// A view as its type says, at the beginning of its memory.
    fn view_of(&self, v: Value, op: Op) -> Result<View> {
        let Some(ty) = self.views.get(&self.m.value_type(v)) else { return Err(self.unsupported(op)) };
        let shape: Vec<i64> = ty.shape.iter().map(|n| n.map_or(0, i64::from)).collect();
        let mut strides = vec![1; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d];
        }
        let bytes = i64::from(self.m.bits(ty.element).div_ceil(8));
        let buffer = if ty.space.name == "GM" { 0 } else { self.core.index() };
        Ok(View { space: ty.space, buffer, base: 0, shape, strides, element: ty.element, bytes, whole: None })
    }

    fn num(&self, v: Value) -> Result<Num> {
        match self.values.get(&v) {
            Some(Cell::Num(n)) => Ok(*n),
            _ => Err(Diagnostic::new("a number is used that was not computed (the module does not verify)")),
        }
    }

    /// A number that says where or how often something is done.
    fn int(&self, v: Value) -> Result<i64> {
        match self.num(v)? {
            Num::Undefined => {
                let text = "a number is needed that was computed of memory which nothing wrote";
                Err(match self.m.defining_op(v) {
                    Some(op) => at(self.m, op, text.to_string()),
                    None => Diagnostic::new(text),
                })
            }
            number => Ok(number.int()),
        }
    }

    fn ints(&self, values: &[Value]) -> Result<Vec<i64>> {
        values.iter().map(|&v| self.int(v)).collect()
    }

    /// A list of indices of which some are numbers.
    fn indices(&self, values: &[Value], known: Option<Vec<i64>>) -> Result<Vec<i64>> {
        let number = |index| match index {
            Index::Known(n) => Ok(n),
            Index::Value(v) => self.int(v),
        };
        index_list(values, known.as_deref()).into_iter().map(number).collect()
    }

    /// The number of a flag.
    fn event(&self, value: Option<Value>, known: Option<i64>) -> Result<i64> {
        match value {
            Some(v) => self.int(v),
            None => Ok(known.unwrap_or(0)),
        }
    }

    /// Checks that an operation speaks of queues that there are.
    fn queues_exist(&self, op: Op, pipes: &[Pipe]) -> Result<()> {
        match pipes.iter().find(|&&p| p as usize > PIPES) {
            Some(p) => Err(Diagnostic::unsupported(
                self.m,
                self.m.op_loc(op),
                format!("the queue {} in npusim", p.keyword()),
            )),
            None => Ok(()),
        }
    }

    fn view(&self, v: Value, op: Op) -> Result<View> {
        match self.values.get(&v) {
            Some(Cell::View(view)) => Ok(view.clone()),
            _ => Err(at(self.m, op, "a view is needed".to_string())),
        }
    }

    fn set(&mut self, v: Value, n: Num) {
        let n = n.rounded(self.m, self.m.value_type(v));
        self.values.insert(v, Cell::Num(n));
    }

    fn looped(&mut self, f: scf::For) -> Result<()> {
        let (i, upper, step) =
            (self.int(f.lower_bound(self.m))?, self.int(f.upper_bound(self.m))?, self.int(f.step(self.m))?);
        if step <= 0 {
            return Err(at(self.m, f.0, format!("a loop by steps of {step}")));
        }
        let init = f.init(self.m).iter().filter_map(|v| self.values.get(v).cloned()).collect();
        self.iteration(f, (i, upper, step), init);
        Ok(())
    }

    /// Begins an iteration of a loop, or leaves it.
    fn iteration(&mut self, f: scf::For, (i, upper, step): (i64, i64, i64), carried: Vec<Cell>) {
        if i >= upper {
            return self.hand_on(f.0, carried);
        }
        let body = self.m.region_block(f.body(self.m));
        let args = self.m.block_args(body).to_vec();
        self.set(args[0], Num::Int(i));
        for (&arg, cell) in args[1..].iter().zip(carried) {
            self.values.insert(arg, cell);
        }
        self.push(body, Around::For(f, i, upper, step));
    }

    fn branch(&mut self, f: scf::If) -> Result<()> {
        let holds = self.int(f.condition(self.m))? != 0;
        let region = if holds { f.then_region(self.m) } else { f.else_region(self.m) };
        if let Some(&block) = self.m.region_blocks(region).first() {
            self.push(block, Around::If(f));
        }
        Ok(())
    }

    fn arith(&mut self, op: Op, kind: arith::Kind) -> Result<()> {
        use arith::Kind as A;
        let result = self.m.result(op);
        if kind == A::Constant {
            let value = self.m.constant_value(result).map(|a| self.m.attr_kind(a));
            let number = match value {
                Some(AttrKind::Int(n, _)) => Num::Int(*n),
                Some(AttrKind::Bool(b)) => Num::Int(-i64::from(*b)),
                Some(AttrKind::Float(f, _)) => Num::Float(f.value()),
                _ => return Err(self.unsupported(op)),
            };
            self.set(result, number);
            return Ok(());
        }
        let operands: Vec<Num> = self.m.operands(op).iter().map(|&v| self.num(v)).collect::<Result<_>>()?;
        let needed = if kind == A::Select { 1 } else { operands.len() };
        if operands[..needed].contains(&Num::Undefined) {
            self.set(result, Num::Undefined);
            return Ok(());
        }
        let (x, y) = (operands[0], operands.get(1).copied().unwrap_or(Num::Int(0)));
        let bits = self.m.bits(self.m.value_type(self.m.operands(op)[0])).clamp(1, 64);
        let wide = |n: Num| (n.int() as u64) << (64 - bits) >> (64 - bits);
        let divisor = || match y.int() {
            0 => Err(at(self.m, op, "a division by zero".to_string())),
            n => Ok(n),
        };
        let number = match kind {
            A::Addi => Num::Int(x.int().wrapping_add(y.int())),
            A::Subi => Num::Int(x.int().wrapping_sub(y.int())),
            A::Muli => Num::Int(x.int().wrapping_mul(y.int())),
            A::Divsi => Num::Int(x.int().wrapping_div(divisor()?)),
            A::Remsi => Num::Int(x.int().wrapping_rem(divisor()?)),
            A::Divui => Num::Int((wide(x) / divisor().map(|_| wide(y))?) as i64),
            A::Remui => Num::Int((wide(x) % divisor().map(|_| wide(y))?) as i64),
            A::Minsi => Num::Int(x.int().min(y.int())),
            A::Maxsi => Num::Int(x.int().max(y.int())),
            A::Minui => Num::Int(wide(x).min(wide(y)) as i64),
            A::Maxui => Num::Int(wide(x).max(wide(y)) as i64),
            A::Andi => Num::Int(x.int() & y.int()),
            A::Ori => Num::Int(x.int() | y.int()),
            A::Xori => Num::Int(x.int() ^ y.int()),
            A::Shli => Num::Int(x.int().checked_shl(y.int() as u32).unwrap_or(0)),
            A::Shrsi => Num::Int(x.int() >> y.int().clamp(0, 63)),
            A::Shrui => Num::Int(wide(x).checked_shr(y.int() as u32).unwrap_or(0) as i64),
            A::Extsi | A::Trunci | A::IndexCast | A::Extf | A::Truncf | A::Sitofp | A::Fptosi | A::Fptoui => {
                x
            }
            A::Bitcast => {
                let types = [self.m.operands(op)[0], result].map(|v| self.m.value_type(v));
                Num::of_bits(self.m, types[1], x.to_bits(self.m, types[0]))
            }
            A::Extui => Num::Int(wide(x) as i64),
            A::Uitofp => {
                let types = [self.m.operands(op)[0], result].map(|v| self.m.value_type(v));
                x.unsigned_rounded(self.m, types[0], types[1])
            }
            A::Addf => Num::Float(x.float() + y.float()),
            A::Subf => Num::Float(x.float() - y.float()),
            A::Mulf => Num::Float(x.float() * y.float()),
            A::Divf => Num::Float(x.float() / y.float()),
            A::Negf => Num::Float(-x.float()),
            A::Maximumf | A::Minimumf if x.float().is_nan() || y.float().is_nan() => Num::Float(f64::NAN),
            A::Maximumf => Num::Float(x.float().max(y.float())),
            A::Minimumf => Num::Float(x.float().min(y.float())),
            A::Maxnumf => Num::Float(x.float().max(y.float())),
            A::Minnumf => Num::Float(x.float().min(y.float())),
            A::Select => {
                if x.int() != 0 {
                    y
                } else {
                    operands[2]
                }
            }
            A::Cmpf => {
                Num::Int(-i64::from(float_compared(arith::Cmpf(op).predicate(self.m), x.float(), y.float())))
            }
            A::Cmpi => {
                let predicate = arith::Cmpi(op).predicate(self.m);
                Num::Int(-i64::from(fold::compare(predicate, x.int(), y.int(), bits)))
            }
            _ => return Err(self.unsupported(op)),
        };
        let number = match (kind, number) {
            (A::Fptosi | A::Fptoui, n) => Num::Int(n.int()),
            (_, n) => n,
        };
        self.set(result, number);
        Ok(())
    }

    fn memref(&mut self, op: Op, kind: memref::Kind, queues: &mut Queues) -> Result<()> {
        if kind == memref::Kind::Store {
            return self.store(op, queues);
        }
        let Some(&result) = self.m.results(op).first() else { return Err(self.unsupported(op)) };
        match kind {
            memref::Kind::ReinterpretCast => {
                let cast = memref::ReinterpretCast(op);
                let mut view = self.view(cast.src(self.m), op)?;
                let offsets = self.indices(cast.offsets(self.m), cast.static_offsets(self.m))?;
                let offset = offsets.iter().fold(0i64, |sum, &n| sum.wrapping_add(n));
                view.base = view.base.wrapping_add(offset.wrapping_mul(view.bytes));
                view.shape = self.indices(cast.sizes(self.m), cast.static_sizes(self.m))?;
                view.strides = self.indices(cast.strides(self.m), cast.static_strides(self.m))?;
                self.values.insert(result, Cell::View(view));
            }
            memref::Kind::View => {
                let cast = memref::View(op);
                let from = self.view(cast.src(self.m), op)?;
                let mut view = self.view_of(result, op)?;
                view.buffer = from.buffer;
                view.base = from.base.wrapping_add(self.int(cast.byte_shift(self.m))?);
                self.values.insert(result, Cell::View(view));
            }
            memref::Kind::Subview => {
                let sub = memref::Subview(op);
                let mut view = self.view(sub.src(self.m), op)?;
                if view.whole.is_none() {
                    view.whole = Some(Rc::new(view.clone()));
                }
                let offsets = self.indices(sub.offsets(self.m), sub.static_offsets(self.m))?;
                let sizes = self.indices(sub.sizes(self.m), sub.static_sizes(self.m))?;
                let strides = self.indices(sub.strides(self.m), sub.static_strides(self.m))?;
                if [offsets.len(), sizes.len(), strides.len()] != [view.shape.len(); 3] {
                    return Err(self.unsupported(op));
                }
                for d in 0..sizes.len() {
                    let last = sizes[d].wrapping_sub(1).wrapping_mul(strides[d]).wrapping_add(offsets[d]);
                    if offsets[d] < 0 || sizes[d] < 0 || (sizes[d] > 0 && last >= view.shape[d]) {
                        let text = format!(
                            "elements {} to {last} along dimension {d} of a view that has {}",
                            offsets[d], view.shape[d]
                        );
                        return Err(at(self.m, op, text));
                    }
                    view.base = view.at(d, offsets[d]);
                    (view.shape[d], view.strides[d]) = (sizes[d], view.strides[d].wrapping_mul(strides[d]));
                }
                self.values.insert(result, Cell::View(view));
            }
            memref::Kind::Load => {
                let load = memref::Load(op);
                let mut view = self.view(load.src(self.m), op)?;
                for (d, i) in self.ints(load.indices(self.m))?.into_iter().enumerate() {
                    self.inside(op, &view, d, i)?;
                    view.base = view.at(d, i);
                }
                (view.shape, view.strides) = (vec![1], vec![1]);
                let number = queues.scalar_read(self.m, self.core, op, &view)?;
                self.set(result, number);
            }
            _ => return Err(self.unsupported(op)),
        }
        Ok(())
    }

    /// Writes an element.
    fn store(&mut self, op: Op, queues: &mut Queues) -> Result<()> {
        let store = memref::Store(op);
        let mut view = self.view(store.dst(self.m), op)?;
        let indices = self.ints(store.indices(self.m))?;
        if indices.len() != view.shape.len() {
            return Err(self.unsupported(op));
        }
        for (d, i) in indices.into_iter().enumerate() {
            self.inside(op, &view, d, i)?;
            view.base = view.at(d, i);
        }
        (view.shape, view.strides) = (vec![1], vec![1]);
        queues.scalar_write(self.m, self.core, op, &view, self.num(store.value(self.m))?)
    }

    /// Checks an index of a view.
    fn inside(&self, op: Op, view: &View, d: usize, i: i64) -> Result<()> {
        if (0..view.shape[d]).contains(&i) {
            return Ok(());
        }
        let text = format!("element {i} along dimension {d} of a view that has {}", view.shape[d]);
        Err(at(self.m, op, text))
    }

    /// Takes the lock that programs have in common, or gives it back (they run one after the other); or waits for all others.
    fn lock(&mut self, op: Op, kind: hivm_more::Kind, queues: &Queues) -> Result<()> {
        let wrong = match kind {
            hivm_more::Kind::CreateSyncBlockLock => {
                self.values.insert(self.m.result(op), Cell::Num(Num::Int(0)));
                return Ok(());
            }
            hivm_more::Kind::SyncBlock => {
                let mode = hivm_more::SyncBlock(op).mode(self.m);
                if mode != hivm_more::SyncBlockMode::AllVector || self.core.kind != Kind::Vector {
                    return Err(self.unsupported(op));
                }
                if self.locked {
                    "programs wait for each other while this one has the lock that they take"
                } else if queues.are_drained(self.core) {
                    self.waiting = Some(Waiting::Programs(op));
                    return Ok(());
                } else {
                    "programs wait for each other while queues go on: a barrier of all is missing"
                }
            }
            hivm_more::Kind::SyncBlockLock if self.locked => "a lock is taken that this program has",
            hivm_more::Kind::SyncBlockUnlock if !self.locked => {
                "a lock is given back that this program has not"
            }
            hivm_more::Kind::SyncBlockUnlock if !queues.are_drained(self.core) => {
                "a lock is given back while queues go on: a barrier of all is missing"
            }
            hivm_more::Kind::SyncBlockLock | hivm_more::Kind::SyncBlockUnlock => {
                self.locked = kind == hivm_more::Kind::SyncBlockLock;
                return Ok(());
            }
            _ => return Err(self.unsupported(op)),
        };
        Err(at(self.m, op, wrong.to_string()))
    }

    fn hivm(&mut self, op: Op, kind: H, queues: &mut Queues) -> Result<()> {
        let m = self.m;
        match kind {
            H::GetBlockIdx => self.set(m.result(op), Num::Int(self.number as i64)),
            H::GetSubBlockIdx => self.set(m.result(op), Num::Int(self.core.number as i64)),
            H::PointerCast => {
                let mut view = self.view_of(m.result(op), op)?;
                let of_vectors = view.space.name == "UB";
                if !self.others.is_empty() && of_vectors != (self.core.kind == Kind::Vector) {
                    let text = format!("{}, which {} has not", view.space.name, self.core.name());
                    return Err(at(m, op, text));
                }
                let cast = hivm::PointerCast(op);
                let (&[address], []) = (cast.addrs(m), cast.dynamic_sizes(m)) else {
                    return Err(self.unsupported(op));
                };
                view.base = self.int(address)?;
                let end = view.base + view.shape.iter().product::<i64>() * view.bytes;
                if view.base < 0 || end > i64::from(view.space.bytes) {
                    let text = format!(
                        "bytes {} to {end} of {}, which has {}",
                        view.base, view.space.name, view.space.bytes
                    );
                    return Err(at(m, op, text));
                }
                if view.base % i64::from(view.space.align) != 0 {
                    let text = format!(
                        "address {} of {}, where they are multiples of {}",
                        view.base, view.space.name, view.space.align
                    );
                    return Err(at(m, op, text));
                }
                self.values.insert(m.result(op), Cell::View(view));
            }
            H::SetFlag => {
                let set = hivm::SetFlag(op);
                let (from, to) = (set.set_pipe(m), set.wait_pipe(m));
                self.queues_exist(op, &[from, to])?;
                let event = self.event(set.event(m), set.static_event(m).map(|e: Event| e as i64))?;
                let flags = vec![Flag::new(self.queue(from), self.queue(to), event)];
                let known = queues.known(self.core);
                queues.issue(self.queue(from), Action::Set { op, flags, known });
            }
            H::WaitFlag => {
                let wait = hivm::WaitFlag(op);
                let (from, to) = (wait.set_pipe(m), wait.wait_pipe(m));
                self.queues_exist(op, &[from, to])?;
                let event = self.event(wait.event(m), wait.static_event(m).map(|e: Event| e as i64))?;
                self.wait(op, to, vec![Flag::new(self.queue(from), self.queue(to), event)], queues);
            }
            H::SyncBlockSet => {
                let set = hivm::SyncBlockSet(op);
                self.queues_exist(op, &[set.tpipe(m), set.pipe(m)])?;
                self.within_block(op, set.instr_mode(m))?;
                let from = self.own(op, set.core(m), set.tpipe(m))?;
                let event = self.event(set.flag(m), set.static_flag(m))?;
                let flags = self.others(set.pipe(m)).map(|to| Flag::new(from, to, event)).collect();
                let known = queues.known(self.core);
                queues.issue(from, Action::Set { op, flags, known });
            }
            H::SyncBlockWait => {
                let wait = hivm::SyncBlockWait(op);
                self.queues_exist(op, &[wait.tpipe(m), wait.pipe(m)])?;
                self.within_block(op, wait.instr_mode(m))?;
                let to = self.own(op, wait.core(m), wait.pipe(m))?;
                let event = self.event(wait.flag(m), wait.static_flag(m))?;
                let flags = self.others(wait.tpipe(m)).map(|from| Flag::new(from, to, event)).collect();
                self.wait(op, to.pipe, flags, queues);
            }
            H::SetFftsBaseAddr => {}
            H::PipeBarrier => match hivm::PipeBarrier(op).pipe(m) {
                Pipe::All => self.waiting = Some(Waiting::Queues),
                pipe => {
                    self.queues_exist(op, &[pipe])?;
                    queues.issue(self.queue(pipe), Action::Barrier);
                }
            },
            _ => {
                return self.compute(op, kind, queues);
            }
        }
        Ok(())
    }

    /// Issues an instruction that computes or copies.
    fn compute(&mut self, op: Op, kind: H, queues: &mut Queues) -> Result<()> {
        let m = self.m;
        supported::check(m, op, kind)?;
        let written = hivm::written(m, op).start;
        let operands = m.operands(op);
        let out = self.view(operands[written], op)?;
        let ins: Vec<Operand> = (0..operands.len())
            .filter(|&i| i != written)
            .map(|i| &operands[i])
            .map(|v| match self.values.get(v) {
                Some(Cell::View(view)) => Ok(Operand::View(view.clone())),
                Some(Cell::Num(n)) => Ok(Operand::Num(*n)),
                None => Err(self.unsupported(op)),
            })
            .collect::<Result<_>>()?;
        let pipe = self.pipe(op, kind, &ins, &out)?;
        let known = queues.known(self.core);
        // What a product reads of L1 another queue takes out of there for it.
        let of_l1 = |o: &Operand| matches!(o, Operand::View(v) if v.space.name == "L1");
        let taken = kind == H::Mmad && ins.iter().any(of_l1);
        if taken {
            let views = ins.iter().filter(|o| of_l1(o)).cloned().collect();
            queues.issue(self.queue(Pipe::Mte1), Action::Take { op, views, known });
        }
        queues.issue(self.queue(pipe), Action::Compute { op, ins, out, known, taken });
        Ok(())
    }

    /// A queue waits for flags; the scalar unit with it, where it is its own.
    fn wait(&mut self, op: Op, to: Pipe, flags: Vec<Flag>, queues: &mut Queues) {
        queues.issue(self.queue(to), Action::Wait { op, flags });
        if to == Pipe::S {
            self.waiting = Some(Waiting::Flag);
        }
    }

    /// A queue of this core, which an operation must name.
    fn own(&self, op: Op, kind: Kind, pipe: Pipe) -> Result<Queue> {
        match self.others.is_empty() || kind != self.core.kind {
            true => Err(at(
                self.m,
                op,
                format!(
                    "a flag of {}, in a function that does not run on it beside another",
                    match kind {
                        Kind::Cube => Core::CUBE.name(),
                        _ => Core::VECTORS[0].name(),
                    }
                ),
            )),
            false => Ok(self.queue(pipe)),
        }
    }

    /// Checks that a flag is one between the cores of a block.
    fn within_block(&self, op: Op, mode: Option<SyncBlockInstrMode>) -> Result<()> {
        match mode {
            None | Some(SyncBlockInstrMode::IntraBlock) => Ok(()),
            Some(mode) => Err(Diagnostic::unsupported(
                self.m,
                self.m.op_loc(op),
                format!("{} in npusim", mode.keyword()),
            )),
        }
    }

    /// A queue of each core of the other kind.
    fn others(&self, pipe: Pipe) -> impl Iterator<Item = Queue> {
        self.others.iter().map(move |&core| Queue { core, pipe })
    }

    /// The queue of an instruction, which goes ways that there are.
    fn pipe(&self, op: Op, kind: H, ins: &[Operand], out: &View) -> Result<Pipe> {
        let spaces: Vec<&str> = ins
            .iter()
            .filter_map(|o| match o {
                Operand::View(v) => Some(v.space.name),
                Operand::Num(_) | Operand::Taken(..) => None,
            })
            .collect();
        let wrong = || {
            let text = format!(
                "{} from {} to {}: there is no such way",
                self.m.op_name(op),
                spaces.join(", "),
                out.space.name
            );
            at(self.m, op, text)
        };
        let copies = matches!(kind, H::Load | H::Store | H::Copy | H::Nd2nz | H::Fixpipe);
        if copies {
            let Operand::View(from) = &ins[0] else { return Err(wrong()) };
            let route = ascend::route(from.space, out.space).ok_or_else(wrong)?;
            let own = match kind {
                H::Load => ("GM", "UB"),
                H::Nd2nz => ("GM", "L1"),
                H::Store => ("UB", "GM"),
                _ => (route.from, route.to),
            };
            let fix = route.pipe == Pipe::Fix.keyword();
            if own != (route.from, route.to) || fix != (kind == H::Fixpipe) {
                return Err(wrong());
            }
            if from.shape != out.shape {
                return Err(at(
                    self.m,
                    op,
                    format!("extents {:?} are copied to {:?}", from.shape, out.shape),
                ));
            }
            return Pipe::from_keyword(route.pipe).ok_or_else(wrong);
        }
        match kind {
            H::Mmad if out.space.name == "L0C" && spaces.iter().all(|s| ["L1", "L0A", "L0B"].contains(s)) => {
                Ok(Pipe::M)
            }
            H::Mmad => Err(wrong()),
            _ if out.space.name == "UB" && spaces.iter().all(|s| *s == "UB") => Ok(Pipe::V),
            _ => Err(wrong()),
        }
    }
}

fn float_compared(predicate: arith::CmpFPredicate, x: f64, y: f64) -> bool {
    use arith::CmpFPredicate as P;
    let unordered = x.is_nan() || y.is_nan();
    match predicate {
        P::False => false,
        P::True => true,
        P::Ord => !unordered,
        P::Uno => unordered,
        P::Oeq => x == y,
        P::One => !unordered && x != y,
        P::Ogt => x > y,
        P::Oge => x >= y,
        P::Olt => x < y,
        P::Ole => x <= y,
        P::Ueq => unordered || x == y,
        P::Une => unordered || x != y,
        P::Ugt => unordered || x > y,
        P::Uge => unordered || x >= y,
        P::Ult => unordered || x < y,
        P::Ule => unordered || x <= y,
    }
}

/// What each argument of a function is beside the kernel's own, which are nothing.
fn arg_types(m: &Module, function: Op, count: usize) -> Vec<String> {
    let dicts = match m.op_attr(function, "arg_attrs").map(|a| m.attr_kind(a)) {
        Some(AttrKind::Array(dicts)) => dicts.as_slice(),
        _ => &[],
    };
    let kind = |i: usize| -> Option<String> {
        let AttrKind::Dict(dict) = m.attr_kind(*dicts.get(i)?) else { return None };
        let (_, attr) = dict.iter().find(|(name, _)| name == "hacc.arg_type")?;
        let AttrKind::Opaque(text) = m.attr_kind(*attr) else { return None };
        Some(text.strip_prefix("#hacc.arg_type<")?.strip_suffix('>')?.to_string())
    };
    (0..count).map(|i| kind(i).unwrap_or_default()).collect()
}
