//! A function's statements to flat code: scopes resolved, calls inlined, blocks ordered, registers analyzed.
//!
//! A call becomes the callee's body, in place. Recursive functions and those whose address is taken can't; their code
//! stands once behind the entry's, and [`crate::isa`]'s `call` goes there.

use crate::ast::{Function, Instr, Loc, Module, Operand, Space, Stmt, Var};
use crate::host::{HostFunction, HostFunctions};
use crate::isa::{self, Addr, Callee, Env, Inst, Sym, Template};
use crate::layout::{Item, Kind, Laid, layout};
use crate::reach::{Reach, callee};
use crate::report::Class;
use crate::report::Source;
use crate::{Error, volume};
use std::collections::HashMap;

/// Calls nested deeper than this are not inlined.
const MAX_CALLS: u32 = 24;
/// Code longer than this is refused.
const MAX_CODE: usize = 4_000_000;

/// An entry ready to run.
pub(crate) struct Code {
    pub insts: Vec<Inst>,
    pub names: Vec<Box<str>>,
    pub template: Template,
    /// The functions that are called, not inlined.
    pub functions: Vec<Callee>,
    /// Functions of the host's that are called.
    pub provided: Vec<HostFunction>,
    /// The entry's local memory and, behind it, the stack if there are such functions.
    pub local_bytes: u32,
    pub static_shared: u32,
    /// Offsets, sizes and alignments of the parameters.
    pub params: Vec<(u32, u32, u32)>,
    pub param_bytes: u32,
    /// Number of registers checked at run time.
    pub tracked: u32,
    pub reqntid: Option<[u32; 3]>,
    pub maxntid: Option<[u32; 3]>,
    pub cluster: Option<[u32; 3]>,
    /// Registers of a thread at first, where the directives say it.
    pub registers: Option<u32>,
    pub files: Vec<(u32, String)>,
    /// The module's text by line.
    pub text: std::sync::Arc<Vec<String>>,
}

impl Code {
    pub fn line_text(&self, line: u32) -> String {
        self.text.get(line as usize - 1).map(|s| s.trim().to_string()).unwrap_or_default()
    }
    pub fn source(&self, l: Loc) -> Option<Source> {
        crate::report::source(&self.files, l)
    }
}

struct Flat<'m> {
    module: &'m Module,
    reach: Reach<'m>,
    env: Env,
    items: Vec<Item>,
    /// Position of each label.
    labels: Vec<Option<usize>>,
    label_scopes: Vec<HashMap<String, u32>>,
    local_bytes: u32,
    /// The function, called and not inlined, whose body this is, and the bytes of its frame.
    frame: Option<(u32, u32)>,
    shared_bytes: u32,
    /// Shared variables of functions, by line and name.
    shared: HashMap<(u32, &'m str), Addr>,
    depth: u32,
    /// Where `ret` of an inlined function goes.
    ret: Option<u32>,
    /// Functions that are called, in the order in which their code follows.
    called: Vec<usize>,
    loc: Option<Loc>,
}

fn align_up(x: u32, a: u32) -> u32 {
    x.div_ceil(a.max(1)) * a.max(1)
}

/// Compiles entry `f` of `module`.
pub(crate) fn compile(
    module: &Module,
    f: &Function,
    text: std::sync::Arc<Vec<String>>,
    host: HostFunctions,
) -> Result<Code, Error> {
    let mut c = Flat::new(module, f, host);
    for (n, g) in module.functions.iter().enumerate() {
        let n = c.reach.number(&g.name).unwrap_or(n);
        c.env.define(&g.name, Sym::Func(n, module.functions[n].body.is_some()));
    }
    let Some(body) = &f.body else {
        return Err(Error::at(f.line, format!("`{}` has no body", f.name)));
    };
    let static_shared = c.variables(body)?;
    c.env.enter();
    let (params, param_bytes) = c.params(f);
    c.called = c.reach.taken.iter().copied().collect();
    c.body(body)?;
    // Falling off the end is an exit.
    c.synthetic(isa::exit_exec, Kind::Exit);
    let (mut functions, mut roots) = (vec![], vec![]);
    while let Some(&n) = c.called.get(functions.len()) {
        roots.push(c.items.len());
        functions.push(c.function(n)?);
    }
    let places: Vec<usize> = c.labels.iter().map(|l| l.unwrap_or(0)).collect();
    let Laid { mut insts, names, entries, tracked, ids } = layout(c.items, &places, &roots, &c.env);
    for (f, entry) in functions.iter_mut().zip(entries) {
        f.entry = entry;
        f.tracked = f.regs.iter().filter_map(|r| ids.get(r).cloned()).flatten().collect();
    }
    if insts.is_empty() {
        insts.push(Inst::new(isa::exit_exec, Class::Control));
    }
    Ok(Code {
        insts,
        names,
        template: c.env.template,
        provided: c.env.provided,
        local_bytes: align_up(c.local_bytes, 16) + if functions.is_empty() { 0 } else { isa::STACK },
        functions,
        static_shared,
        params,
        param_bytes,
        tracked,
        reqntid: f.reqntid,
        maxntid: f.maxntid,
        cluster: f.cluster,
        registers: registers(f),
        files: module.files.clone(),
        text,
    })
}

/// Registers that a thread starts with where it changes their number (§9.7.19.5): those of `.maxnreg`, or as many as there
/// can be with the number of threads that the directives allow. Each quarter of the warps shares 16384.
fn registers(f: &Function) -> Option<u32> {
    let threads = f.reqntid.or(f.maxntid).map(volume);
    let most = threads.filter(|t| (1..=1024).contains(t)).map(|t| {
        let warps = (t as u32).div_ceil(32).div_ceil(4).saturating_mul(f.minnctapersm.unwrap_or(1).max(1));
        (16384 / 32 / warps).min(256) & !7
    });
    f.maxnreg.map(|n| n & !7).or(most)
}

impl<'m> Flat<'m> {
    fn new(module: &'m Module, f: &'m Function, host: HostFunctions) -> Flat<'m> {
        Flat {
            module,
            reach: Reach::new(module, f),
            env: Env::new(host),
            items: vec![],
            labels: vec![],
            label_scopes: vec![],
            local_bytes: 0,
            frame: None,
            shared_bytes: 0,
            shared: HashMap::new(),
            depth: 0,
            ret: None,
            called: vec![],
            loc: None,
        }
    }

    /// Places the variables of the module and the shared ones of functions: static ones, those of the module first, and behind them the
    /// dynamic ones, which have no size and begin together. Gives the bytes of shared memory before what a launch adds.
    fn variables(&mut self, body: &'m [Stmt]) -> Result<u32, Error> {
        let module = self.module;
        let mut dynamic = vec![];
        for (n, v) in module.vars.iter().enumerate() {
            match v.space {
                Space::Global | Space::Const => self.env.define(&v.name, Sym::Var(Addr::Global(n as u32))),
                Space::Shared if v.size() == 0 || v.external => dynamic.push(v),
                Space::Shared if self.reach.mentions(&v.name) => {
                    let at = self.shared(v)?;
                    self.env.define(&v.name, Sym::Var(at));
                }
                Space::Shared => {}
                _ => {
                    let text = format!("not supported yet: `{}` at module scope", v.name);
                    return Err(Error::at(v.line, text));
                }
            }
        }
        self.shared_of(body)?;
        for n in self.reach.functions.clone() {
            self.shared_of(module.functions[n].body.as_deref().unwrap_or_default())?;
        }
        let end =
            dynamic.iter().map(|v| align_up(self.shared_bytes, v.align)).fold(self.shared_bytes, u32::max);
        for v in dynamic {
            self.env.define(&v.name, Sym::Var(Addr::Shared(align_up(end, v.align))));
        }
        Ok(end)
    }

    /// Places the entry's parameters. Gives the offset, size and alignment of each, and the bytes of all.
    fn params(&mut self, f: &Function) -> (Vec<(u32, u32, u32)>, u32) {
        let mut params = vec![];
        let mut end = 0u32;
        for v in &f.params {
            let at = align_up(end, v.align);
            self.env.define(&v.name, Sym::Var(Addr::Param(at)));
            let size = v.size() as u32;
            params.push((at, size, v.align));
            end = at.saturating_add(size);
        }
        (params, end)
    }

    fn shared(&mut self, v: &Var) -> Result<Addr, Error> {
        let at = align_up(self.shared_bytes, v.align);
        let size = u32::try_from(v.size()).unwrap_or(u32::MAX);
        self.shared_bytes = at.saturating_add(size);
        if self.shared_bytes > 1 << 22 {
            return Err(Error::at(
                v.line,
                format!("shared variable `{}` of {} bytes is too large", v.name, v.size()),
            ));
        }
        Ok(Addr::Shared(at))
    }

    /// Places the shared variables that a function declares: one each, however often it is inlined.
    fn shared_of(&mut self, b: &'m [Stmt]) -> Result<(), Error> {
        for s in b {
            match s {
                Stmt::Var(v) if v.space == Space::Shared => {
                    let at = self.shared(v)?;
                    self.shared.insert((v.line, &v.name), at);
                }
                Stmt::Block(b) => self.shared_of(b)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A variable in local memory, or in the frame of the function that this is.
    fn local(&mut self, v: &Var) -> Result<u32, Error> {
        let bytes = self.frame.as_mut().map_or(&mut self.local_bytes, |f| &mut f.1);
        let at = align_up(*bytes, v.align);
        *bytes = at.saturating_add(u32::try_from(v.size()).unwrap_or(u32::MAX));
        if *bytes > 1 << 22 {
            return Err(Error::at(
                v.line,
                format!("local variable `{}` of {} bytes is too large", v.name, v.size()),
            ));
        }
        let addr = self.frame.map_or(Addr::Local(at), |f| Addr::Frame(f.0, at));
        self.env.define(&v.name, Sym::Var(addr));
        Ok(at)
    }

    fn fresh_label(&mut self) -> u32 {
        self.labels.push(None);
        self.labels.len() as u32 - 1
    }

    fn find_label(&self, name: &str) -> Option<u32> {
        self.label_scopes.iter().rev().find_map(|s| s.get(name).copied())
    }

    fn synthetic(&mut self, exec: isa::Exec, kind: Kind) {
        let mut inst = Inst::new(exec, Class::Control);
        inst.synthetic = true;
        inst.line = self.items.last().map_or(1, |i| i.inst.line);
        inst.loc = self.loc;
        self.items.push(Item {
            inst,
            name: "".into(),
            reads: vec![],
            writes: vec![],
            copy: false,
            bytes: None,
            computes: false,
            shuffle: None,
            guard: None,
            held: vec![],
            inputs: vec![],
            jumps: vec![],
            kind,
        });
    }

    fn body(&mut self, b: &[Stmt]) -> Result<(), Error> {
        self.env.enter();
        // Labels of a block are visible in all of it.
        let mut scope = HashMap::new();
        for s in b {
            if let Stmt::Label(n, line) = s {
                let l = self.fresh_label();
                if scope.insert(n.clone(), l).is_some() {
                    return Err(Error::at(*line, format!("label `{n}` is defined twice")));
                }
                self.env.define(n, Sym::Label);
            }
        }
        self.label_scopes.push(scope);
        for s in b {
            match s {
                Stmt::Var(v) => match v.space {
                    Space::Reg => self.env.define_regs(v),
                    Space::Shared => {
                        let at = self.shared[&(v.line, v.name.as_str())];
                        self.env.define(&v.name, Sym::Var(at));
                    }
                    Space::Local | Space::Param => {
                        self.local(v)?;
                    }
                    _ => {
                        let line = v.line;
                        return Err(Error::at(
                            line,
                            format!("not supported yet: `{}` inside a function", v.name),
                        ));
                    }
                },
                Stmt::Label(n, _) => {
                    if let Some(l) = self.find_label(n) {
                        self.labels[l as usize] = Some(self.items.len());
                    }
                }
                Stmt::Block(b) => self.body(b)?,
                Stmt::BranchTargets(n, t) => {
                    self.env.tables.insert(n.clone(), t.clone());
                }
                Stmt::Instr(i) => self.instr(i)?,
            }
        }
        self.label_scopes.pop();
        self.env.leave();
        Ok(())
    }

    fn instr(&mut self, i: &Instr) -> Result<(), Error> {
        if self.items.len() > MAX_CODE {
            return Err(Error::at(i.line, "the code is too long once calls are inlined"));
        }
        self.loc = i.loc;
        if i.op == "call"
            && let Some(n) = callee(i).and_then(|g| self.reach.number(g))
        {
            if self.depth < MAX_CALLS && !self.reach.recursive.contains(&n) {
                return self.inline(i, &self.module.functions[n]);
            }
            if !self.called.contains(&n) {
                self.called.push(n);
            }
        }
        self.env.jumps.clear();
        let d = isa::decode(i, &mut self.env)?;
        let mut jumps = vec![];
        for n in std::mem::take(&mut self.env.jumps) {
            match self.find_label(&n) {
                Some(l) => jumps.push(l),
                None => {
                    return Err(Error::at(
                        i.line,
                        format!("`{}` goes to `{n}`, which is no label here", i.name()),
                    ));
                }
            }
        }
        let mut kind = match i.op.as_str() {
            "bra" => Kind::Branch,
            "brx" => Kind::Table,
            "ret" | "exit" | "trap" => Kind::Exit,
            _ => Kind::Plain,
        };
        let mut inst = d.inst;
        if i.op == "ret"
            && let Some(l) = self.ret
        {
            inst.exec = isa::bra_exec;
            jumps = vec![l];
            kind = Kind::Branch;
        } else if i.op == "ret" && self.frame.is_some() {
            inst.exec = isa::ret_exec;
        }
        if kind == Kind::Plain && !jumps.is_empty() {
            kind = Kind::Branch;
        }
        // Decoding reads the guard first.
        let guard = i.guard.as_ref().and(d.reads.first().copied());
        self.items.push(Item {
            inst,
            name: i.name().into(),
            reads: d.reads,
            writes: d.writes,
            copy: d.copy,
            bytes: d.bytes,
            computes: d.computes && !d.copy,
            shuffle: d.shuffle,
            guard,
            held: d.held,
            inputs: d.inputs,
            jumps,
            kind,
        });
        Ok(())
    }

    /// Replaces a call by the callee's body; its parameters are the caller's variables.
    fn inline(&mut self, i: &Instr, g: &Function) -> Result<(), Error> {
        self.depth += 1;
        let mut lists: Vec<&[Operand]> = vec![];
        for o in &i.operands {
            if let Operand::List(v) = o {
                lists.push(v);
            }
        }
        let (rets, args): (&[Operand], &[Operand]) = match lists[..] {
            [r, a] => (r, a),
            [one] if g.rets.is_empty() => (&[], one),
            [one] => (one, &[]),
            _ => (&[], &[]),
        };
        if rets.len() != g.rets.len() || args.len() != g.params.len() {
            return Err(Error::at(
                i.line,
                format!("`{}` is called with the wrong number of parameters", g.name),
            ));
        }
        let mut bind = vec![];
        for (v, o) in g.rets.iter().zip(rets).chain(g.params.iter().zip(args)) {
            let sym = match o {
                Operand::Ident(n) => self.env.lookup(n),
                _ => None,
            };
            match (v.space, sym) {
                (Space::Param, Some(s @ Sym::Var(a))) if a.is_local() => bind.push((v, s)),
                (Space::Reg, Some(s @ Sym::Reg(_))) => bind.push((v, s)),
                _ => {
                    return Err(Error::at(
                        i.line,
                        format!("not supported yet: how `{}` takes `{}`", g.name, v.name),
                    ));
                }
            }
        }
        // A guarded call jumps over the body where the guard is false.
        let end = self.fresh_label();
        if let Some((p, neg)) = &i.guard {
            let Some(Sym::Reg(r)) = self.env.lookup(p) else {
                return Err(Error::at(i.line, format!("`{p}` is not a declared predicate")));
            };
            self.synthetic(isa::bra_exec, Kind::Branch);
            if let Some(it) = self.items.last_mut() {
                it.inst.guard = r.idx;
                it.inst.neg = !neg;
                it.reads.push(r);
                it.jumps = vec![end];
            }
        }
        let saved = self.env.isolate();
        let labels = std::mem::take(&mut self.label_scopes);
        let ret = self.ret.replace(end);
        self.env.enter();
        for (v, s) in bind {
            self.env.define(&v.name, s);
        }
        let Some(b) = &g.body else { return Ok(()) };
        self.body(b)?;
        self.env.restore(saved);
        self.label_scopes = labels;
        self.ret = ret;
        self.labels[end as usize] = Some(self.items.len());
        self.depth -= 1;
        Ok(())
    }

    /// The code of function `n`, to be called.
    fn function(&mut self, n: usize) -> Result<Callee, Error> {
        let g = &self.module.functions[n];
        let first = self.env.declared.len();
        let saved = self.env.isolate();
        self.env.enter();
        self.frame = Some((n as u32, 0));
        let mut place = |v: &Var| {
            if v.space != Space::Param {
                return Err(Error::at(
                    v.line,
                    format!(
                        "not supported yet: `{}` of `{}`, which is called by address or recursive, in a register",
                        v.name, g.name
                    ),
                ));
            }
            Ok((self.local(v)?, v.size() as u32))
        };
        let rets = g.rets.iter().map(&mut place).collect::<Result<_, _>>()?;
        let params = g.params.iter().map(&mut place).collect::<Result<_, _>>()?;
        self.body(g.body.as_deref().unwrap_or_default())?;
        self.synthetic(isa::ret_exec, Kind::Exit);
        self.env.restore(saved);
        let frame = self.frame.take().map_or(0, |f| f.1);
        let addresses: Vec<_> =
            self.env.frames.iter().filter(|f| f.0 == n as u32).map(|f| (f.1, f.2)).collect();
        let mut regs = self.env.declared[first..].to_vec();
        regs.extend(addresses.iter().map(|a| a.0));
        Ok(Callee {
            name: g.name.clone(),
            address: isa::function_address(n),
            entry: 0,
            params,
            rets,
            // The return address takes room too.
            frame: align_up(frame + 8, 16),
            addresses,
            regs,
            tracked: vec![],
        })
    }
}
