//! A function's statements to flat code: scopes resolved, calls inlined, blocks ordered, registers analyzed.
//!
//! **Order.** Blocks are laid out so that every loop is contiguous, its header first and its exits after it, and so
//! that otherwise control flows forward: strongly connected components in topological order, and inside each one the
//! same again without the edges back to its header. The scheduler's merging of diverged lanes relies on it.

use crate::Error;
use crate::ast::{Function, Instr, Loc, Module, Operand, Space, Stmt, Var};
use crate::isa::{self, Addr, Class, Env, Inst, Sym, Template};
use crate::regs::Reg;
use crate::report::Source;
use std::collections::{HashMap, HashSet};

/// Calls nested deeper than this are refused: they are inlined, so recursion would not end.
const MAX_CALLS: u32 = 24;
/// Code longer than this is refused.
const MAX_CODE: usize = 4_000_000;

/// An entry ready to run.
pub(crate) struct Code {
    pub insts: Vec<Inst>,
    pub names: Vec<Box<str>>,
    pub template: Template,
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

/// Something in the flat list before layout.
struct Item {
    inst: Inst,
    name: Box<str>,
    reads: Vec<Reg>,
    writes: Vec<Reg>,
    copy: bool,
    computes: bool,
    shuffle: Option<(Reg, Reg)>,
    guard: Option<Reg>,
    held: Vec<Reg>,
    inputs: Vec<Reg>,
    /// Labels it may go to.
    jumps: Vec<u32>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// May jump to `jumps[0]`.
    Branch,
    /// Jumps to one of `jumps`.
    Table,
    /// Ends the lanes.
    Exit,
}

struct Flat<'m> {
    module: &'m Module,
    env: Env,
    items: Vec<Item>,
    /// Position of each label.
    labels: Vec<Option<usize>>,
    label_scopes: Vec<HashMap<String, u32>>,
    local_bytes: u32,
    shared_bytes: u32,
    depth: u32,
    /// Where `ret` of an inlined function goes.
    ret: Option<u32>,
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
) -> Result<Code, Error> {
    let mut c = Flat {
        module,
        env: Env::new(),
        items: vec![],
        labels: vec![],
        label_scopes: vec![],
        local_bytes: 0,
        shared_bytes: 0,
        depth: 0,
        ret: None,
        loc: None,
    };
    for g in &module.functions {
        c.env.define(&g.name, Sym::Func);
    }
    // Module-scope shared variables come first, the unsized dynamic ones after all static ones.
    let mut dynamic = vec![];
    for (n, v) in module.vars.iter().enumerate() {
        match v.space {
            Space::Global | Space::Const => c.env.define(&v.name, Sym::Var(Addr::Global(n as u32))),
            Space::Shared if v.size() == 0 || v.external => dynamic.push(v),
            Space::Shared if mentions(module, f, &v.name) => c.shared(v)?,
            Space::Shared => {}
            _ => return Err(Error::at(v.line, format!("not supported yet: `{}` at module scope", v.name))),
        }
    }
    let Some(body) = &f.body else {
        return Err(Error::at(f.line, format!("`{}` has no body", f.name)));
    };
    // Function-scope shared variables must be known before the dynamic ones can be placed.
    let mut static_shared = c.shared_bytes;
    scan_shared(module, f, &mut static_shared, 0)?;
    let mut end = static_shared;
    for v in &dynamic {
        end = end.max(align_up(static_shared, v.align));
    }
    for v in dynamic {
        c.env.define(&v.name, Sym::Var(Addr::Shared(align_up(end, v.align))));
    }
    let mut params = vec![];
    let mut at = 0u32;
    c.env.enter();
    for v in &f.params {
        at = align_up(at, v.align);
        c.env.define(&v.name, Sym::Var(Addr::Param(at)));
        let size = v.size() as u32;
        params.push((at, size, v.align));
        at = at.saturating_add(size);
    }
    c.body(body)?;
    // Falling off the end is an exit.
    c.synthetic(isa::exit_exec, Kind::Exit);
    let n_labels = c.labels.len();
    let mut places = Vec::with_capacity(n_labels);
    for l in &c.labels {
        places.push(l.unwrap_or(0));
    }
    let (mut insts, names, tracked) = layout(c.items, &places, &c.env);
    if insts.is_empty() {
        insts.push(Inst::new(isa::exit_exec, Class::Control));
    }
    Ok(Code {
        insts,
        names,
        template: c.env.template,
        local_bytes: align_up(c.local_bytes, 16),
        static_shared: end,
        params,
        param_bytes: at,
        tracked,
        reqntid: f.reqntid,
        maxntid: f.maxntid,
        cluster: f.cluster,
        files: module.files.clone(),
        text,
    })
}

/// Whether the entry or anything it may call mentions a name.
fn mentions(module: &Module, f: &Function, name: &str) -> bool {
    fn operand(o: &Operand, name: &str) -> bool {
        match o {
            Operand::Ident(n) | Operand::Offset(n, _) => n == name,
            Operand::Mem { base, .. } => operand(base, name),
            _ => false,
        }
    }
    fn body(b: &[Stmt], name: &str) -> bool {
        b.iter().any(|s| match s {
            Stmt::Instr(i) => i.operands.iter().any(|o| operand(o, name)),
            Stmt::Block(b) => body(b, name),
            _ => false,
        })
    }
    let all = std::iter::once(f).chain(module.functions.iter().filter(|g| !g.entry));
    all.filter_map(|g| g.body.as_ref()).any(|b| body(b, name))
}

/// Adds the sizes of the shared variables declared inside functions.
fn scan_shared(module: &Module, f: &Function, at: &mut u32, depth: u32) -> Result<(), Error> {
    fn walk(m: &Module, b: &[Stmt], at: &mut u32, depth: u32) -> Result<(), Error> {
        for s in b {
            match s {
                Stmt::Var(v) if v.space == Space::Shared => {
                    *at = align_up(*at, v.align).saturating_add(u32::try_from(v.size()).unwrap_or(u32::MAX));
                }
                Stmt::Block(b) => walk(m, b, at, depth)?,
                Stmt::Instr(i) if i.op == "call" => {
                    if let Some(g) = callee(m, i) {
                        scan_shared(m, g, at, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
    if depth > MAX_CALLS {
        return Err(Error::at(f.line, format!("not supported yet: recursion (through `{}`)", f.name)));
    }
    f.body.as_ref().map_or(Ok(()), |b| walk(module, b, at, depth))
}

/// The function with a body that a direct call names.
fn callee<'m>(m: &'m Module, i: &Instr) -> Option<&'m Function> {
    i.operands.iter().find_map(|o| match o {
        Operand::Ident(n) => m.functions.iter().find(|g| g.name == *n && g.body.is_some()),
        _ => None,
    })
}

impl Flat<'_> {
    fn shared(&mut self, v: &Var) -> Result<(), Error> {
        let at = align_up(self.shared_bytes, v.align);
        let size = u32::try_from(v.size()).unwrap_or(u32::MAX);
        self.shared_bytes = at.saturating_add(size);
        if self.shared_bytes > 1 << 22 {
            return Err(Error::at(
                v.line,
                format!("shared variable `{}` of {} bytes is too large", v.name, v.size()),
            ));
        }
        self.env.define(&v.name, Sym::Var(Addr::Shared(at)));
        Ok(())
    }

    fn local(&mut self, v: &Var) -> Result<u32, Error> {
        let at = align_up(self.local_bytes, v.align);
        self.local_bytes = at.saturating_add(u32::try_from(v.size()).unwrap_or(u32::MAX));
        if self.local_bytes > 1 << 22 {
            return Err(Error::at(
                v.line,
                format!("local variable `{}` of {} bytes is too large", v.name, v.size()),
            ));
        }
        self.env.define(&v.name, Sym::Var(Addr::Local(at)));
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
                    Space::Shared => self.shared(v)?,
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
            && let Some(g) = callee(self.module, i)
        {
            return self.inline(i, g);
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
        if self.depth > MAX_CALLS {
            return Err(Error::at(i.line, format!("not supported yet: recursion (`{}`)", g.name)));
        }
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
                (Space::Param, Some(s @ Sym::Var(Addr::Local(_)))) => bind.push((v, s)),
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
}

struct Block {
    first: usize,
    last: usize,
    succ: Vec<usize>,
}

/// Instructions, their names, and how many registers are tracked.
type Laid = (Vec<Inst>, Vec<Box<str>>, u32);

/// Orders blocks, resolves jumps and finds the registers that need checking.
fn layout(items: Vec<Item>, labels: &[usize], env: &Env) -> Laid {
    let n = items.len();
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    for (k, it) in items.iter().enumerate() {
        for &l in &it.jumps {
            leader[labels[l as usize].min(n)] = true;
        }
        if it.kind != Kind::Plain {
            leader[k + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..n).filter(|&k| leader[k]).collect();
    let mut block_of = vec![0; n + 1];
    for (b, w) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(n);
        block_of[*w..end].fill(b);
    }
    let mut blocks: Vec<Block> = vec![];
    for (b, &first) in starts.iter().enumerate() {
        let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
        let it = &items[last];
        let mut succ: Vec<usize> =
            it.jumps.iter().map(|&l| block_of[labels[l as usize].min(n - 1)]).collect();
        let falls = match it.kind {
            Kind::Plain => true,
            Kind::Branch | Kind::Exit => it.inst.guard != isa::NONE,
            Kind::Table => it.inst.guard != isa::NONE,
        };
        if falls && last + 1 < n {
            succ.push(b + 1);
        }
        blocks.push(Block { first, last, succ });
    }
    let order = order(&blocks);
    let uninit = uninit(&items, &blocks, &order, env);
    // Place blocks; a block whose fall-through is not next gets a jump.
    let mut at = vec![0u32; blocks.len()];
    let mut out: Vec<Inst> = Vec::with_capacity(n);
    let mut names: Vec<Box<str>> = Vec::with_capacity(n);
    let mut fix: Vec<(usize, usize)> = vec![];
    let mut slots: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let mut tables: Vec<(usize, Vec<usize>)> = vec![];
    let mut uninit = uninit;
    for (k, &b) in order.iter().enumerate() {
        at[b] = out.len() as u32;
        let blk = &blocks[b];
        for (i, slot) in slots.iter_mut().enumerate().take(blk.last + 1).skip(blk.first) {
            let Some(mut it) = slot.take() else { continue };
            it.inst.uninit = uninit.by_item.remove(&i).map(Box::new);
            match it.kind {
                Kind::Branch => fix.push((out.len(), block_of[labels[it.jumps[0] as usize].min(n - 1)])),
                Kind::Table => tables.push((
                    out.len(),
                    it.jumps.iter().map(|&l| block_of[labels[l as usize].min(n - 1)]).collect(),
                )),
                _ => {}
            }
            out.push(it.inst);
            names.push(it.name);
        }
        // The fall-through successor, when there is one, is the next block of the text.
        let falls = blk.succ.last() == Some(&(b + 1)) && blk.last + 1 < n;
        if falls && order.get(k + 1) != Some(&(b + 1)) {
            let mut j = Inst::new(isa::bra_exec, Class::Control);
            j.synthetic = true;
            j.line = out.last().map_or(1, |i| i.line);
            fix.push((out.len(), b + 1));
            out.push(j);
            names.push("".into());
        }
    }
    for (i, b) in fix {
        out[i].target = at[b];
    }
    for (i, t) in tables {
        out[i].list = t.into_iter().map(|b| at[b]).collect();
    }
    (out, names, uninit.tracked)
}

/// Blocks reachable from the first, loops contiguous.
fn order(blocks: &[Block]) -> Vec<usize> {
    let mut out = vec![];
    let all: Vec<usize> = (0..blocks.len()).collect();
    order_within(blocks, &all, 0, &mut out, 0);
    // Unreachable blocks stay at the end: labels may be taken that nothing jumps to.
    let mut seen = vec![false; blocks.len()];
    out.iter().for_each(|&b| seen[b] = true);
    out.extend((0..blocks.len()).filter(|&b| !seen[b]));
    out
}

fn order_within(blocks: &[Block], set: &[usize], entry: usize, out: &mut Vec<usize>, depth: u32) {
    let mut inside = vec![false; blocks.len()];
    set.iter().for_each(|&b| inside[b] = true);
    // Below the outermost level, edges back to the header are cut.
    let next = |b: usize, k: usize| -> Option<Option<usize>> {
        blocks[b].succ.get(k).map(|&s| (inside[s] && !(depth > 0 && s == entry)).then_some(s))
    };
    // Tarjan's algorithm without recursion; it gives components in reverse topological order.
    const UNSEEN: usize = usize::MAX;
    let mut index = vec![UNSEEN; blocks.len()];
    let mut low = vec![0; blocks.len()];
    let mut on = vec![false; blocks.len()];
    let mut stack = vec![];
    let mut comps: Vec<Vec<usize>> = vec![];
    let mut count = 0;
    let mut work = vec![(entry, 0usize)];
    while let Some(&mut (b, ref mut k)) = work.last_mut() {
        if *k == 0 {
            index[b] = count;
            low[b] = count;
            count += 1;
            stack.push(b);
            on[b] = true;
        }
        // Later successors first, so that the fall-through ends up closest after its block.
        let step = next(b, *k);
        *k += 1;
        match step {
            Some(Some(s)) => {
                if index[s] == UNSEEN {
                    work.push((s, 0));
                } else if on[s] {
                    low[b] = low[b].min(index[s]);
                }
            }
            Some(None) => {}
            None => {
                work.pop();
                if let Some(&(p, _)) = work.last() {
                    low[p] = low[p].min(low[b]);
                }
                if low[b] == index[b] {
                    let mut comp = vec![];
                    while let Some(x) = stack.pop() {
                        on[x] = false;
                        comp.push(x);
                        if x == b {
                            break;
                        }
                    }
                    comps.push(comp);
                }
            }
        }
    }
    for comp in comps.into_iter().rev() {
        if let [b] = comp[..] {
            out.push(b);
        } else if depth > 200 {
            let mut c = comp;
            c.sort_unstable();
            out.extend(c);
        } else {
            // The header is where the depth-first walk came in.
            let header = comp.iter().copied().min_by_key(|&b| index[b]).unwrap_or(comp[0]);
            order_within(blocks, &comp, header, out, depth + 1);
        }
    }
}

struct UninitInfo {
    by_item: HashMap<usize, isa::Uninit>,
    tracked: u32,
}

/// Finds reads that some path reaches without a write. Only the registers of such reads are tracked at run time.
fn uninit(items: &[Item], blocks: &[Block], order: &[usize], env: &Env) -> UninitInfo {
    // Number the declared registers densely.
    let mut number: HashMap<Reg, u32> = HashMap::new();
    for r in &env.declared {
        let n = number.len() as u32;
        number.entry(*r).or_insert(n);
    }
    let n = number.len();
    let words = n.div_ceil(64);
    let get = |s: &[u64], k: u32| s[k as usize / 64] >> (k % 64) & 1 != 0;
    let mut inn: Vec<Option<Vec<u64>>> = vec![None; blocks.len()];
    if let Some(f) = inn.first_mut() {
        *f = Some(vec![0; words]);
    }
    let flow = |set: &mut Vec<u64>, it: &Item| {
        if it.inst.guard == isa::NONE {
            for w in &it.writes {
                if let Some(&k) = number.get(w) {
                    set[k as usize / 64] |= 1 << (k % 64);
                }
            }
        }
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order {
            let Some(mut set) = inn[b].clone() else { continue };
            for it in &items[blocks[b].first..=blocks[b].last] {
                flow(&mut set, it);
            }
            for &s in &blocks[b].succ {
                match &mut inn[s] {
                    None => {
                        inn[s] = Some(set.clone());
                        changed = true;
                    }
                    Some(old) => {
                        for (o, x) in old.iter_mut().zip(&set) {
                            if *o & !x != 0 {
                                *o &= x;
                                changed = true;
                            }
                        }
                    }
                }
            }
        }
    }
    let mut tracked: HashMap<u32, u32> = HashMap::new();
    for (b, blk) in blocks.iter().enumerate() {
        let Some(mut set) = inn[b].clone() else { continue };
        for it in &items[blk.first..=blk.last] {
            for r in &it.reads {
                if let Some(&k) = number.get(r)
                    && !get(&set, k)
                {
                    let t = tracked.len() as u32;
                    tracked.entry(k).or_insert(t);
                }
            }
            flow(&mut set, it);
        }
    }
    let track = |tracked: &mut HashMap<u32, u32>, r: &Reg| {
        if let Some(&k) = number.get(r) {
            let t = tracked.len() as u32;
            tracked.entry(k).or_insert(t);
        }
    };
    let has = |t: &HashMap<u32, u32>, r: &Reg| number.get(r).is_some_and(|k| t.contains_key(k));
    // What is computed from a doubtful register is doubtful too.
    loop {
        let before = tracked.len();
        for it in items.iter().filter(|it| it.copy || it.computes || it.shuffle.is_some()) {
            if it.reads.iter().any(|r| has(&tracked, r)) {
                it.writes.iter().for_each(|r| track(&mut tracked, r));
            }
        }
        if tracked.len() == before {
            break;
        }
    }
    // Where what a `wgmma` has in its registers comes from: the sources of copies too.
    let mut fenced: HashMap<u32, u32> = HashMap::new();
    items.iter().flat_map(|it| it.held.iter().chain(&it.inputs)).for_each(|r| track(&mut fenced, r));
    loop {
        let before = fenced.len();
        for it in items.iter().filter(|it| it.copy) {
            if it.writes.iter().any(|r| has(&fenced, r)) {
                it.reads.iter().for_each(|r| track(&mut fenced, r));
            }
        }
        if fenced.len() == before {
            break;
        }
    }
    for k in fenced.keys() {
        let t = tracked.len() as u32;
        tracked.entry(*k).or_insert(t);
    }
    // A copy of a tracked register makes its destination doubtful too.
    loop {
        let before = tracked.len();
        for it in items.iter().filter(|it| it.copy) {
            if it.reads.iter().any(|r| has(&tracked, r)) {
                it.writes.iter().for_each(|r| track(&mut tracked, r));
            }
        }
        if tracked.len() == before {
            break;
        }
    }
    // A register that is packed from or unpacked to narrower ones is tracked in parts of 16 bits, for a code generator may
    // leave one part undefined and never look at it.
    let bits = |v: &[Reg]| v.iter().map(|r| r.file.bits()).sum::<u32>();
    let repacks = |it: &Item| {
        it.copy
            && bits(&it.reads) == bits(&it.writes)
            && it.reads.iter().chain(&it.writes).all(|r| r.file.bits() % 16 == 0)
    };
    let mut split: HashSet<Reg> = HashSet::new();
    for it in items.iter().filter(|it| it.reads.len() != it.writes.len() && repacks(it)) {
        split.extend(it.reads.iter().chain(&it.writes));
    }
    let parts = |r: &Reg| if split.contains(r) { r.file.bits() / 16 } else { 1 };
    let mut ids: HashMap<Reg, std::ops::Range<u32>> = HashMap::new();
    let mut count = 0;
    for r in env.declared.iter().filter(|r| has(&tracked, r)) {
        ids.entry(*r).or_insert_with(|| {
            let first = count;
            count += parts(r);
            first..count
        });
    }
    let pick = |v: &[Reg]| -> Vec<u32> { v.iter().filter_map(|r| ids.get(r).cloned()).flatten().collect() };
    let mut by_item = HashMap::new();
    for (i, it) in items.iter().enumerate() {
        let (reads, mut writes, hold) = (pick(&it.reads), pick(&it.writes), pick(&it.held));
        let inputs = pick(&it.inputs);
        writes.retain(|w| !hold.contains(w));
        let copy = it.copy.then(|| {
            let whole = |r: &Reg| ids.contains_key(r) && parts(r) != r.file.bits() / 16;
            if !repacks(it) || it.reads.iter().chain(&it.writes).any(whole) {
                return writes.iter().map(|&w| (w, reads.clone())).collect();
            }
            // Part by part; untracked registers have parts too, which are always initialized.
            let flat = |v: &[Reg]| -> Vec<Option<u32>> {
                v.iter()
                    .flat_map(|r| {
                        let first = ids.get(r).map(|x| x.start);
                        (0..r.file.bits() / 16).map(move |k| first.map(|f| f + k))
                    })
                    .collect()
            };
            let (from, to) = (flat(&it.reads), flat(&it.writes));
            to.iter().zip(from).filter_map(|(t, f)| t.map(|t| (t, f.into_iter().collect()))).collect()
        });
        if !reads.is_empty() || !writes.is_empty() || !hold.is_empty() {
            let shuffle = it.shuffle.map_or(vec![], |(to, from)| {
                let (to, from) = (pick(&[to]), pick(&[from]));
                let of = |k: usize| if to.len() == from.len() { vec![from[k]] } else { from.clone() };
                to.iter().enumerate().map(|(k, &t)| (t, of(k))).collect()
            });
            let guard = it.guard.and_then(|g| pick(&[g]).first().copied());
            let computes = it.computes;
            by_item.insert(i, isa::Uninit { reads, writes, copy, computes, guard, shuffle, hold, inputs });
        }
    }
    UninitInfo { by_item, tracked: count }
}
