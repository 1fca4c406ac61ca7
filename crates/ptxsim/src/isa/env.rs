//! Names in scope while decoding, and the registers and constants they become.

use crate::ast::{Ty, Var};
use crate::host::{HostFunction, HostFunctions};
use crate::regs::{File, Reg, Regs};
use std::collections::HashMap;

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Addr {
    /// Module variable `n` in host memory.
    Global(u32),
    /// Offset in the CTA's shared window.
    Shared(u32),
    /// Offset in the thread's local memory.
    Local(u32),
    /// Function, and offset in the frame of one of its activations.
    Frame(u32, u32),
    /// Offset in the kernel's parameters.
    Param(u32),
}

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sym {
    Reg(Reg),
    Var(Addr),
    Label,
    /// Its number in the module, and whether it has a body.
    Func(usize, bool),
}

impl Addr {
    /// In local memory.
    pub fn is_local(self) -> bool {
        matches!(self, Addr::Local(_) | Addr::Frame(..))
    }
}

/// A constant whose value is known at launch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reloc {
    /// Address of module variable `n`.
    Global(u32),
    /// Address of the kernel's parameters.
    Param,
}

/// A special register, filled at launch or at warp start (PTX ISA §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    DynamicSmem,
    TotalSmem,
    /// Reads as zero.
    Zero,
}

/// The registers of an entry with their initial values, and what must be filled later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    pub regs: Regs,
    pub relocs: Vec<(u32, Reloc, i64)>,
    pub specials: Vec<(Special, Reg)>,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Sym>,
    /// `%r<100>`: stem to file, first index and count.
    ranges: HashMap<String, (File, u32, u32)>,
    /// Vector registers.
    vectors: HashMap<String, (File, u32, u32)>,
}

/// Scopes and the register template being built.
pub(crate) struct Env {
    scopes: Vec<Scope>,
    pub template: Template,
    constants: HashMap<(File, u128), u32>,
    addresses: HashMap<(File, Addr, i64), u32>,
    sinks: HashMap<File, u32>,
    /// Registers declared in the text, as opposed to constants and specials.
    pub declared: Vec<Reg>,
    /// Registers that hold addresses of frames: function, register, offset.
    pub frames: Vec<(u32, Reg, i64)>,
    /// The carry flag of `add.cc`.
    pub carry: Reg,
    /// `.branchtargets` lists.
    pub tables: HashMap<String, Vec<String>>,
    /// Labels that the instruction just decoded may go to, resolved by the flattening.
    pub jumps: Vec<String>,
    /// Functions that have no body in the text.
    pub host: HostFunctions,
    /// Those of them that are called.
    pub provided: Vec<HostFunction>,
}

impl Env {
    pub fn new(host: HostFunctions) -> Env {
        let mut e = Env {
            scopes: vec![Scope::default()],
            template: Template::default(),
            constants: HashMap::new(),
            addresses: HashMap::new(),
            sinks: HashMap::new(),
            declared: vec![],
            frames: vec![],
            carry: Reg { file: File::P, idx: 0 },
            tables: HashMap::new(),
            jumps: vec![],
            host,
            provided: vec![],
        };
        e.carry.idx = e.template.regs.push(File::P, 0);
        e
    }

    pub fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }
    pub fn leave(&mut self) {
        self.scopes.pop();
    }
    /// Hides all scopes but the outermost (a function sees only the module), giving them back to restore.
    pub fn isolate(&mut self) -> Saved {
        Saved(self.scopes.split_off(1))
    }
    pub fn restore(&mut self, saved: Saved) {
        self.scopes.truncate(1);
        self.scopes.extend(saved.0);
    }

    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let n = self.scopes.len() - 1;
        &mut self.scopes[n]
    }

    pub fn define(&mut self, name: &str, sym: Sym) {
        self.scope().names.insert(name.to_string(), sym);
    }

    /// Declares the registers of a `.reg` directive.
    pub fn define_regs(&mut self, v: &Var) {
        let file = if v.ty == Ty::Pred { File::P } else { File::of(v.ty.bits().max(8)) };
        let count = v.range.unwrap_or(1) * v.vec;
        let mut first = 0;
        for k in 0..count {
            let idx = self.template.regs.push(file, 0);
            if k == 0 {
                first = idx;
            }
            self.declared.push(Reg { file, idx });
        }
        let name = v.name.clone();
        let s = self.scope();
        if v.range.is_some() {
            s.ranges.insert(name, (file, first, count));
        } else if v.vec > 1 {
            s.vectors.insert(name, (file, first, v.vec));
        } else {
            s.names.insert(name, Sym::Reg(Reg { file, idx: first }));
        }
    }

    pub fn lookup(&self, name: &str) -> Option<Sym> {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        for s in self.scopes.iter().rev() {
            if let Some(v) = s.names.get(name) {
                return Some(*v);
            }
            // `%r12` belongs to `%r<…>`; a stem may end in digits itself, so every split is tried.
            for k in 1..=digits {
                let (stem, number) = name.split_at(name.len() - k);
                if number.len() > 1 && number.starts_with('0') {
                    continue;
                }
                if let Some(&(file, first, n)) = s.ranges.get(stem)
                    && let Ok(k) = number.parse::<u32>()
                    && k < n
                {
                    return Some(Sym::Reg(Reg { file, idx: first + k }));
                }
            }
        }
        None
    }

    /// A component of a vector register.
    pub fn component(&self, name: &str, c: char) -> Option<Reg> {
        let k = match c {
            'x' => 0,
            'y' => 1,
            'z' => 2,
            _ => 3,
        };
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.vectors.get(name))
            .and_then(|&(file, first, n)| (k < n).then_some(Reg { file, idx: first + k }))
    }

    /// All components of a vector register.
    pub fn vector(&self, name: &str) -> Option<Vec<Reg>> {
        let &(file, first, n) = self.scopes.iter().rev().find_map(|s| s.vectors.get(name))?;
        Some((first..first + n).map(|idx| Reg { file, idx }).collect())
    }

    /// A register filled with a constant.
    pub fn constant(&mut self, file: File, bits: u128) -> u32 {
        let bits = match file {
            File::P => bits & 1,
            File::Q => bits,
            f => bits & ((1u128 << f.bits()) - 1),
        };
        let regs = &mut self.template.regs;
        *self.constants.entry((file, bits)).or_insert_with(|| regs.push(file, bits))
    }

    /// A register filled with a variable's address plus `off`.
    pub fn address(&mut self, file: File, addr: Addr, off: i64) -> u32 {
        let at = match addr {
            Addr::Shared(o) | Addr::Local(o) => i64::from(o).wrapping_add(off),
            Addr::Param(o) if file == File::W => i64::from(o).wrapping_add(off),
            _ => {
                let key = (File::D, addr, off);
                if let Some(i) = self.addresses.get(&key) {
                    return *i;
                }
                let i = self.template.regs.push(File::D, 0);
                self.addresses.insert(key, i);
                let (r, off) = match addr {
                    Addr::Frame(f, o) => {
                        self.frames.push((f, Reg { file: File::D, idx: i }, off.wrapping_add(i64::from(o))));
                        return i;
                    }
                    Addr::Global(n) => (Reloc::Global(n), off),
                    Addr::Param(o) => (Reloc::Param, off.wrapping_add(i64::from(o))),
                    _ => (Reloc::Param, off),
                };
                self.template.relocs.push((i, r, off));
                return i;
            }
        };
        self.constant(file, u128::from(at as u64))
    }

    /// A register that nothing reads.
    pub fn sink(&mut self, file: File) -> u32 {
        let regs = &mut self.template.regs;
        *self.sinks.entry(file).or_insert_with(|| regs.push(file, 0))
    }

    /// A special register that holds one value for the whole run of a warp.
    pub fn special(&mut self, name: &str, c: Option<char>) -> Option<Reg> {
        let k = match c {
            None => 0u8,
            Some('x') => 0,
            Some('y') => 1,
            Some('z') => 2,
            Some(_) => 3,
        };
        use Special::*;
        let (s, file) = match (name, c.is_some()) {
            ("%tid", true) => (Tid(k), File::W),
            ("%ntid", true) => (Ntid(k), File::W),
            ("%ctaid", true) => (Ctaid(k), File::W),
            ("%nctaid", true) => (Nctaid(k), File::W),
            ("%clusterid", true) => (ClusterId(k), File::W),
            ("%nclusterid", true) => (NclusterId(k), File::W),
            ("%cluster_ctaid", true) => (ClusterCtaid(k), File::W),
            ("%cluster_nctaid", true) => (ClusterNctaid(k), File::W),
            ("%cluster_ctarank", false) => (ClusterCtarank, File::W),
            ("%cluster_nctarank", false) => (ClusterNctarank, File::W),
            ("%is_explicit_cluster", false) => (IsExplicitCluster, File::P),
            ("%laneid", false) => (Laneid, File::W),
            ("%warpid", false) => (Warpid, File::W),
            ("%nwarpid", false) => (Nwarpid, File::W),
            ("%smid", false) => (Smid, File::W),
            ("%nsmid", false) => (Nsmid, File::W),
            ("%gridid", false) => (Gridid, File::D),
            ("%lanemask_eq", false) => (LanemaskEq, File::W),
            ("%lanemask_le", false) => (LanemaskLe, File::W),
            ("%lanemask_lt", false) => (LanemaskLt, File::W),
            ("%lanemask_ge", false) => (LanemaskGe, File::W),
            ("%lanemask_gt", false) => (LanemaskGt, File::W),
            ("%dynamic_smem_size", false) => (DynamicSmem, File::W),
            ("%total_smem_size" | "%aggr_smem_size", false) => (TotalSmem, File::W),
            (
                "%reserved_smem_offset_0"
                | "%reserved_smem_offset_1"
                | "%reserved_smem_offset_begin"
                | "%reserved_smem_offset_end"
                | "%reserved_smem_offset_cap",
                false,
            ) => (Zero, File::W),
            ("WARP_SZ", false) => {
                return Some(Reg { file: File::W, idx: self.constant(File::W, 32) });
            }
            ("%current_graph_exec", false) => (Zero, File::D),
            (n, false) if n.starts_with("%pm") && n.ends_with("_64") => (Zero, File::D),
            (n, false) if n.starts_with("%envreg") || n.starts_with("%pm") => (Zero, File::W),
            _ => return None,
        };
        if let Some((_, r)) = self.template.specials.iter().find(|(x, r)| *x == s && r.file == file) {
            return Some(*r);
        }
        let r = Reg { file, idx: self.template.regs.push(file, 0) };
        self.template.specials.push((s, r));
        Some(r)
    }
}

/// Scopes hidden by [`Env::isolate`].
pub(crate) struct Saved(Vec<Scope>);
