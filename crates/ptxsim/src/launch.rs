//! Programs and launches: the crate's public face.

use crate::ast::{Init, Module, Space};
use crate::flatten::{Code, compile};
use crate::host::{self, HostFunctions};
use crate::isa::{Reloc, Special};
use crate::machine::{Grid, Pool, Slice, Unit};
use crate::memory::Memory;
use crate::regs::Regs;
use crate::report::{Counters, Finding, FindingKind, InstStat, Report};
use crate::shadow::GlobalShadow;
use crate::standstill::Standstill;
use crate::{Error, parse, volume};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A value for one kernel parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// An address in a registered allocation.
    Pointer(u64),
    /// Integers of 8 to 64 bits; the parameter's own size decides how much is taken.
    Int(i64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// Raw bytes, for structures and tensor maps.
    Bytes(Vec<u8>),
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the `.entry`.
    pub entry: String,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster; `None` takes the entry's `.reqnctapercluster`, or one.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// One value a parameter. A trailing parameter may be left out and is zero.
    pub params: Vec<Param>,
}

/// How to run it.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Check races, uninitialized reads and asynchrony. Bounds, alignment, barriers and deadlock are always checked.
    pub checks: bool,
    /// Zero schedules warps in order; any other value shuffles them, the same way each time.
    pub seed: u64,
    /// Worker threads; zero takes one a core.
    pub threads: usize,
    /// Stop at the first finding.
    pub stop_at_first: bool,
    /// Findings kept, one a kind and PTX line.
    pub max_findings: usize,
    /// Warp instructions after which the launch is stopped; zero for no limit.
    pub max_instructions: u64,
    /// Rounds in which warps only polled and nothing changed, after which they are deadlocked; zero for no limit.
    pub wait_rounds: u32,
    /// Ends the run, which is an error then, when it is set.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions {
            checks: true,
            seed: 0,
            threads: 0,
            stop_at_first: false,
            max_findings: 100,
            max_instructions: 0,
            wait_rounds: 2000,
            interrupt: None,
        }
    }
}

/// A parsed module with its variables in memory.
pub struct Program {
    module: Module,
    text: Arc<Vec<String>>,
    globals: Globals,
    codes: Mutex<HashMap<String, Arc<Code>>>,
    host: HostFunctions,
}

/// Module variables in host memory, kept across launches as a loaded module's are.
struct Globals {
    /// Address of variable `n` of the module, when it is global or constant.
    address: Vec<u64>,
    size: Vec<u64>,
    _storage: Vec<Box<[u128]>>,
}

/// About one parameter of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

impl Program {
    /// Parses a PTX module. Entries are compiled when first launched.
    pub fn parse(text: &str) -> Result<Program, Error> {
        Program::with_functions(text, host::none)
    }

    /// The same, for a module that calls functions of the host's.
    pub fn with_functions(text: &str, host: HostFunctions) -> Result<Program, Error> {
        let module = parse::parse(text)?;
        let globals = Globals::new(&module)?;
        let text = Arc::new(text.lines().map(str::to_string).collect());
        Ok(Program { module, text, globals, codes: Mutex::new(HashMap::new()), host })
    }

    /// The syntax tree.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Names of the kernels.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.module.functions.iter().filter(|f| f.entry).map(|f| f.name.as_str())
    }

    /// The parameters of an entry.
    pub fn params(&self, entry: &str) -> Result<Vec<ParamInfo>, Error> {
        let code = self.code(entry)?;
        Ok(code.params.iter().map(|&(offset, size, align)| ParamInfo { offset, size, align }).collect())
    }

    /// Static shared memory of an entry, in bytes.
    pub fn static_shared(&self, entry: &str) -> Result<u32, Error> {
        Ok(self.code(entry)?.static_shared)
    }

    /// The address of a module variable, and its size.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let n = self.module.vars.iter().position(|v| v.name == name)?;
        (self.globals.address[n] != 0).then(|| (self.globals.address[n], self.globals.size[n]))
    }

    fn code(&self, entry: &str) -> Result<Arc<Code>, Error> {
        let mut codes = self.codes.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(c) = codes.get(entry) {
            return Ok(c.clone());
        }
        let f = self.module.functions.iter().find(|f| f.entry && f.name == entry && f.body.is_some());
        let Some(f) = f else {
            let have: Vec<&str> = self.entries().collect();
            return Err(Error::new(format!("no entry `{entry}`; the module has {}", have.join(", "))));
        };
        let c = Arc::new(compile(&self.module, f, self.text.clone(), self.host)?);
        codes.insert(entry.to_string(), c.clone());
        Ok(c)
    }

    /// Runs a kernel to its end. An `Err` is a launch that could not be made; broken rules are in the report.
    pub fn launch(&self, l: &Launch, memory: &Memory, options: &SimOptions) -> Result<Report, Error> {
        self.launch_ranks(l, &[], memory, options)
    }

    /// Runs a kernel on several devices at the same time, which reach each other's memory: what is launched is that of rank 0, and `peers` are
    /// the parameters of the ranks after it. What synchronizes programs of two of them is of system scope.
    pub fn launch_ranks(
        &self,
        l: &Launch,
        peers: &[Vec<Param>],
        memory: &Memory,
        options: &SimOptions,
    ) -> Result<Report, Error> {
        let code = self.code(&l.entry)?;
        let cluster = l.cluster.or(code.cluster).unwrap_or([1; 3]);
        check_shape(l, &code, cluster)?;
        let of_ranks = std::iter::once(&l.params).chain(peers);
        let mut params: Vec<Vec<Line>> =
            of_ranks.map(|params| param_block(l, params, &code)).collect::<Result<_, _>>()?;
        let mut memory = memory.clone();
        for (n, v) in self.module.vars.iter().enumerate() {
            if self.globals.address[n] != 0 {
                let p = self.globals.address[n] as *mut u8;
                let writable = v.space == Space::Global;
                // SAFETY: the storage lives as long as `self`, and only launches touch it.
                unsafe { memory.register(p, self.globals.size[n] as usize, &v.name, writable) };
            }
        }
        for params in params.iter_mut().filter(|params| !params.is_empty()) {
            // SAFETY: `params` outlives the launch below.
            unsafe {
                memory.register(params.as_mut_ptr().cast(), code.param_bytes as usize, "parameters", false)
            };
        }
        let static_shared =
            if l.shared_bytes > 0 { code.static_shared.div_ceil(16) * 16 } else { code.static_shared };
        let shared_bytes = static_shared.saturating_add(l.shared_bytes);
        if shared_bytes > 232_448 {
            return Err(Error::new(format!(
                "{shared_bytes} bytes of shared memory are more than the 232448 a CTA can have"
            )));
        }
        let filled =
            |params: &Vec<Line>| fill(&code, l, cluster, shared_bytes, params.as_ptr() as u64, &self.globals);
        let templates: Vec<Regs> = params.iter().map(filled).collect();
        let units = volume(l.grid) / volume(cluster);
        let grid = Grid {
            code: &code,
            memory: &memory,
            options,
            grid: l.grid,
            block: l.block,
            cluster,
            shared_bytes,
            templates: &templates,
            units,
            findings: Mutex::new(vec![]),
            output: Mutex::new(vec![]),
            stop: AtomicBool::new(false),
            executed: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            standstill: Standstill::default(),
            shadow: GlobalShadow::new(&memory, options.checks),
        };
        let stats = run(&grid, units * templates.len() as u64, options);
        if options.interrupt.as_ref().is_some_and(|i| i.load(Relaxed)) {
            return Err(Error::new("the run was interrupted"));
        }
        let mut findings = grid.findings.into_inner().unwrap_or_else(|e| e.into_inner());
        findings.sort_by_key(|f: &Finding| f.line);
        if options.stop_at_first {
            // Other workers may have added theirs before they saw the stop.
            let first = findings.iter().position(|f| f.kind != FindingKind::Limit).unwrap_or(0);
            findings.drain(..first.min(findings.len()));
            let mut places = Vec::new();
            findings.retain(|f| {
                // Of ranks that wait for each other, one finding a line of the source.
                let kept = places.is_empty()
                    || f.kind == FindingKind::Deadlock && f.rank.is_some() && !places.contains(&f.source);
                if kept {
                    places.push(f.source.clone());
                }
                kept
            });
        }
        Ok(Report {
            findings,
            counters: counters(&code, &stats),
            output: grid.output.into_inner().unwrap_or_else(|e| e.into_inner()),
        })
    }
}

/// Runs all units on a pool of workers, in order of their numbers.
fn run(grid: &Grid<'_>, units: u64, options: &SimOptions) -> Vec<InstStat> {
    let next = AtomicU64::new(0);
    // Units wait for each other only if all of them can be resident, which is as many as a GPU holds.
    let resident = ((512 << 20) / Unit::bytes(grid)).clamp(160, 4096);
    let total = Mutex::new(vec![InstStat::default(); grid.code.insts.len()]);
    let work = || {
        let mut pool = Pool::default();
        // Units that wait for others; a new one starts when all of them have had a turn.
        let mut active: Vec<Unit> = vec![];
        let mut turn = 0;
        loop {
            if grid.stopped() {
                for u in active.drain(..) {
                    u.recycle(&mut pool);
                }
                break;
            }
            if turn >= active.len() {
                let n = if active.len() < resident { next.fetch_add(1, Relaxed) } else { u64::MAX };
                if n < units {
                    active.push(Unit::new(grid, n, &mut pool));
                    turn = active.len() - 1;
                } else if active.is_empty() {
                    break;
                } else {
                    turn = 0;
                }
            }
            match active[turn].run(grid, 400) {
                Slice::Done => {
                    let unit = active.swap_remove(turn);
                    grid.standstill.ended(unit.number.into());
                    unit.recycle(&mut pool);
                }
                Slice::More => turn += 1,
            }
        }
        let mut t = total.lock().unwrap_or_else(|e| e.into_inner());
        for (t, s) in t.iter_mut().zip(pool.total.iter().flatten()) {
            t.add(s);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if options.threads == 0 { cores } else { options.threads }.min(units.max(1) as usize);
    if threads <= 1 {
        work();
    } else {
        rayon::scope(|s| {
            for _ in 0..threads {
                s.spawn(|_| work());
            }
        });
    }
    total.into_inner().unwrap_or_else(|e| e.into_inner())
}

fn check_shape(l: &Launch, code: &Code, cluster: [u32; 3]) -> Result<(), Error> {
    let threads = volume(l.block);
    let bad = |m: String| Err(Error::new(m));
    if l.grid.contains(&0) || l.block.contains(&0) || cluster.contains(&0) {
        return bad(format!(
            "grid {:?}, block {:?} and cluster {cluster:?} must not have a zero",
            l.grid, l.block
        ));
    }
    // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
    for (what, sizes, limits) in
        [("grid", l.grid, [i32::MAX as u32, 65535, 65535]), ("block", l.block, [1024, 1024, 64])]
    {
        if let Some(k) = (0..3).find(|&k| sizes[k] > limits[k]) {
            let axis = ["x", "y", "z"][k];
            return bad(format!(
                "a {what} of {sizes:?} is larger than a GPU takes: at most {} along {axis}",
                limits[k]
            ));
        }
    }
    if threads > 1024 {
        return bad(format!("a block of {threads} threads is more than the 1024 a CTA can have"));
    }
    if let Some(r) = code.reqntid
        && r != l.block
    {
        return bad(format!("the kernel requires a block of {r:?} (.reqntid), not {:?}", l.block));
    }
    if let Some(m) = code.maxntid
        && threads > volume(m)
    {
        return bad(format!("a block of {threads} threads is more than the kernel's .maxntid {m:?}"));
    }
    if (0..3).any(|k| !l.grid[k].is_multiple_of(cluster[k])) {
        return bad(format!("grid {:?} is not a multiple of the cluster {cluster:?}", l.grid));
    }
    let size = volume(cluster);
    if size > 16 {
        return bad(format!("a cluster of {size} CTAs is more than the 16 there can be"));
    }
    Ok(())
}

/// The parameter block, in words so that it is aligned.
fn param_block(l: &Launch, params: &[Param], code: &Code) -> Result<Vec<Line>, Error> {
    if params.len() > code.params.len() {
        return Err(Error::new(format!(
            "`{}` has {} parameters, {} values were given",
            l.entry,
            code.params.len(),
            params.len()
        )));
    }
    let mut bytes = vec![0u8; code.param_bytes as usize];
    for (k, p) in params.iter().enumerate() {
        let (off, size, _) = code.params[k];
        let raw: Vec<u8> = match p {
            Param::Pointer(a) => a.to_le_bytes().to_vec(),
            Param::Int(v) => v.to_le_bytes().to_vec(),
            Param::F32(v) => v.to_le_bytes().to_vec(),
            Param::F64(v) => v.to_le_bytes().to_vec(),
            Param::Bytes(b) => b.clone(),
        };
        let size = size as usize;
        if raw.len() < size && !matches!(p, Param::Int(_)) || matches!(p, Param::Bytes(b) if b.len() != size)
        {
            return Err(Error::new(format!(
                "parameter {k} of `{}` has {size} bytes, the value given has {}",
                l.entry,
                raw.len()
            )));
        }
        let n = size.min(raw.len());
        bytes[off as usize..off as usize + n].copy_from_slice(&raw[..n]);
    }
    Ok(bytes
        .chunks(128)
        .map(|c| {
            let mut w = Line([0; 128]);
            w.0[..c.len()].copy_from_slice(c);
            w
        })
        .collect())
}

/// Storage as aligned as any parameter asks for.
#[repr(align(128))]
#[derive(Clone, Copy)]
struct Line([u8; 128]);

/// The register template with everything that holds for the whole launch.
fn fill(code: &Code, l: &Launch, cluster: [u32; 3], shared: u32, params: u64, globals: &Globals) -> Regs {
    let mut regs = code.template.regs.clone();
    for &(idx, r, off) in &code.template.relocs {
        let base = match r {
            Reloc::Param => params,
            Reloc::Global(n) => globals.address[n as usize],
        };
        regs.d[idx as usize] = [base.wrapping_add(off as u64); 32];
    }
    let threads = l.block.iter().product::<u32>();
    for &(s, r) in &code.template.specials {
        let v: u64 = match s {
            Special::Ntid(k) => l.block.get(k as usize).copied().unwrap_or(0).into(),
            Special::Nctaid(k) => l.grid.get(k as usize).copied().unwrap_or(0).into(),
            Special::ClusterNctaid(k) => cluster.get(k as usize).copied().unwrap_or(0).into(),
            Special::NclusterId(k) => {
                (0..3).nth(k as usize).map_or(0, |k: usize| u64::from(l.grid[k] / cluster[k]))
            }
            Special::ClusterNctarank => cluster.iter().product::<u32>().into(),
            Special::IsExplicitCluster => u64::from(code.cluster.is_some() || l.cluster.is_some()),
            Special::Nwarpid => threads.div_ceil(32).into(),
            Special::Nsmid => 132,
            Special::DynamicSmem => l.shared_bytes.into(),
            Special::TotalSmem => shared.into(),
            _ => continue,
        };
        for lane in 0..32 {
            regs.set_lane(r, lane, v);
        }
    }
    regs
}

/// Fills what differs by warp.
pub(crate) fn fill_warp(
    grid: &Grid<'_>,
    regs: &mut Regs,
    cta: [u32; 3],
    in_cluster: [u32; 3],
    cluster: [u32; 3],
    rank: u32,
    warp: u32,
) {
    for &(s, r) in &grid.code.template.specials {
        let three = |v: [u32; 3], k: u8| v.get(k as usize).copied().unwrap_or(0);
        for lane in 0..32usize {
            let l = lane as u32;
            let v: u32 = match s {
                Special::Tid(k) => three(crate::machine::thread_of(grid.block, warp, lane), k),
                Special::Ctaid(k) => three(cta, k),
                Special::ClusterCtaid(k) => three(in_cluster, k),
                Special::ClusterId(k) => three(cluster, k),
                Special::ClusterCtarank => rank,
                Special::Laneid => l,
                Special::Warpid => warp,
                Special::Smid => (cta[0] + grid.grid[0] * (cta[1] + grid.grid[1] * cta[2])) % 132,
                Special::LanemaskEq => 1 << l,
                Special::LanemaskLt => (1 << l) - 1,
                Special::LanemaskLe => (1 << l) - 1 | 1 << l,
                Special::LanemaskGe => !((1 << l) - 1),
                Special::LanemaskGt => !((1 << l) - 1) & !(1 << l),
                _ => break,
            };
            regs.set_lane(r, lane, v.into());
        }
    }
}

impl Globals {
    fn new(m: &Module) -> Result<Globals, Error> {
        let mut g = Globals { address: vec![0; m.vars.len()], size: vec![0; m.vars.len()], _storage: vec![] };
        for (n, v) in m.vars.iter().enumerate() {
            if !matches!(v.space, Space::Global | Space::Const) {
                continue;
            }
            let size = v.size();
            if v.external || size == 0 {
                return Err(Error::at(
                    v.line,
                    format!("not supported yet: the external variable `{}`", v.name),
                ));
            }
            if size > 1 << 32 {
                return Err(Error::at(v.line, format!("`{}` has {size} bytes, which is too much", v.name)));
            }
            let align = u64::from(v.align.clamp(16, 4096));
            let mut s = vec![0u128; ((size + align) / 16 + 1) as usize].into_boxed_slice();
            g.address[n] = (s.as_mut_ptr() as u64).div_ceil(align) * align;
            g.size[n] = size;
            g._storage.push(s);
        }
        for (n, v) in m.vars.iter().enumerate() {
            if g.address[n] == 0 {
                continue;
            }
            let es = v.ty.bytes();
            for (k, init) in v.init.iter().enumerate() {
                let bits = match init {
                    Init::Int(b) if v.ty == crate::ast::Ty::F32 => u64::from((*b as i64 as f32).to_bits()),
                    Init::Int(b) if v.ty == crate::ast::Ty::F64 => (*b as i64 as f64).to_bits(),
                    Init::Int(b) => *b,
                    Init::Float(f) if v.ty.bits() == 32 => u64::from((*f as f32).to_bits()),
                    Init::Float(f) => f.to_bits(),
                    Init::Symbol { name, offset, .. } => match (
                        m.vars.iter().position(|x| x.name == *name),
                        m.functions.iter().position(|f| f.name == *name && f.body.is_some()),
                    ) {
                        (Some(t), _) if g.address[t] != 0 => g.address[t].wrapping_add(*offset as u64),
                        (None, Some(f)) => crate::isa::function_address(f).wrapping_add(*offset as u64),
                        _ => {
                            return Err(Error::at(
                                v.line,
                                format!("not supported yet: the address of `{name}`"),
                            ));
                        }
                    },
                };
                let at = k as u64 * u64::from(es);
                if at + u64::from(es) > g.size[n] {
                    return Err(Error::at(v.line, format!("`{}` has more initial values than room", v.name)));
                }
                if es > 8 {
                    return Err(Error::at(v.line, "not supported yet: initial values of 128 bits"));
                }
                // SAFETY: inside the storage just made, aligned to the element.
                unsafe { crate::memory::write(g.address[n] + at, es, bits) };
            }
        }
        Ok(g)
    }
}

fn counters(code: &Code, stats: &[InstStat]) -> Counters {
    let mut c = Counters::default();
    for (k, s) in stats.iter().enumerate() {
        let i = &code.insts[k];
        if s.warps == 0 || i.synthetic {
            continue;
        }
        let name = &code.names[k];
        let macs = crate::isa::macs(i, name);
        c.total.add(i.class, name, macs, s);
        *c.opcodes.entry(name.to_string()).or_default() += s.warps;
        let line = match i.loc.and_then(|l| code.source(l)) {
            Some(s) => format!("{}:{}", s.file, s.line),
            None => format!("ptx:{}", i.line),
        };
        c.lines.entry(line).or_default().add(i.class, name, macs, s);
    }
    c
}
