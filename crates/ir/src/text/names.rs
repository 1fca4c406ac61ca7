//! The names that values and blocks have in text, chosen as MLIR's printer does.
//!
//! Values of a region are numbered before those of the regions nested in it; sibling regions use the same numbers
//! again. Constants are named for their value (`%c1_i32`, `%true`, `%cst`), what has a name in the source by that; a name that is
//! taken gets a suffix.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::attrs::AttrKind;
use crate::dialect::arith;
use crate::entity::{Block, Op, Region, Type, Value};
use crate::module::{Module, ValueDef};
use crate::opdef::Trait;
use crate::types::TypeKind;

#[derive(Debug, Clone, Copy)]
enum Name {
    Unset,
    Number(u32),
    Text(u32),
}

/// The names of everything inside one operation.
#[derive(Debug)]
pub(crate) struct Names {
    values: Vec<Name>,
    texts: Vec<String>,
    blocks: FxHashMap<Block, u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    value: u32,
    argument: u32,
    conflict: u32,
}

struct Namer<'m> {
    module: &'m Module,
    names: Names,
    used: FxHashSet<String>,
}

impl Names {
    /// Names everything inside an operation, its own results included.
    pub(crate) fn new(module: &Module, op: Op) -> Self {
        let names = Names {
            values: vec![Name::Unset; module.num_values()],
            texts: Vec::new(),
            blocks: FxHashMap::default(),
        };
        let mut namer = Namer { module, names, used: FxHashSet::default() };
        let mut counters = Counters::default();
        // An operation printed alone may use values from outside.
        let mut inner = Vec::new();
        module.walk(op, &mut |o| inner.push(o));
        for o in inner {
            for &operand in module.operands(o) {
                let outside = match module.value_def(operand) {
                    ValueDef::Result(d, _) => d != op && !module.is_ancestor(op, d),
                    ValueDef::Argument(b, _) => {
                        module.block_parent_op(b).is_none_or(|p| !module.is_ancestor(op, p))
                    }
                };
                if outside && op != module.root() {
                    namer.number(operand, &mut counters);
                }
            }
        }
        namer.results(op, &mut counters);
        for &region in module.regions(op) {
            namer.region(region, counters);
        }
        namer.names
    }

    /// Writes `%name`, with `#n` for a later result of an operation.
    pub(crate) fn write(&self, module: &Module, value: Value, out: &mut String) {
        use std::fmt::Write;
        let (first, index) = match module.value_def(value) {
            ValueDef::Result(op, i) => {
                let results = module.results(op);
                (results[0], (results.len() > 1).then_some(i))
            }
            ValueDef::Argument(..) => (value, None),
        };
        match self.values.get(first.as_u32() as usize) {
            Some(Name::Number(n)) => write!(out, "%{n}").expect("writing to a string"),
            Some(&Name::Text(t)) => {
                out.push('%');
                out.push_str(&self.texts[t as usize]);
            }
            // Only in broken IR: a use of what was never named.
            _ => write!(out, "%<<{value}>>").expect("writing to a string"),
        }
        if let Some(i) = index {
            write!(out, "#{i}").expect("writing to a string");
        }
    }

    /// The number of a block's label.
    pub(crate) fn block(&self, block: Block) -> Option<u32> {
        self.blocks.get(&block).copied()
    }
}

impl Namer<'_> {
    fn number(&mut self, value: Value, counters: &mut Counters) {
        let value = match self.module.value_def(value) {
            ValueDef::Result(op, _) => self.module.results(op)[0],
            ValueDef::Argument(..) => value,
        };
        let name = &mut self.names.values[value.as_u32() as usize];
        if matches!(name, Name::Unset) {
            *name = Name::Number(counters.value);
            counters.value += 1;
        }
    }

    fn text(&mut self, value: Value, wanted: String, counters: &mut Counters, scope: &mut Vec<String>) {
        let mut name = wanted.clone();
        while !self.used.insert(name.clone()) {
            name = format!("{wanted}_{}", counters.conflict);
            counters.conflict += 1;
        }
        scope.push(name.clone());
        self.names.values[value.as_u32() as usize] = Name::Text(self.names.texts.len() as u32);
        self.names.texts.push(name);
    }

    fn results(&mut self, op: Op, counters: &mut Counters) {
        if let Some(&first) = self.module.results(op).first() {
            self.number(first, counters);
        }
    }

    fn region(&mut self, region: Region, mut counters: Counters) {
        let m = self.module;
        let mut scope = Vec::new();
        for (index, &block) in m.region_blocks(region).iter().enumerate() {
            self.names.blocks.insert(block, index as u32);
            for &arg in m.block_args(block) {
                if index == 0 {
                    let name = format!("arg{}", counters.argument);
                    counters.argument += 1;
                    let name = m.value_name(arg).map_or(name, str::to_string);
                    self.text(arg, name, &mut counters, &mut scope);
                } else {
                    self.number(arg, &mut counters);
                }
            }
            for op in m.block_ops(block) {
                let &[first, ref more @ ..] = m.results(op) else { continue };
                let of_source = || m.value_name(first).filter(|_| more.is_empty()).map(str::to_string);
                match constant_name(m, op).or_else(of_source) {
                    Some(name) => self.text(first, name, &mut counters, &mut scope),
                    None => self.number(first, &mut counters),
                }
            }
        }
        for &block in m.region_blocks(region) {
            for op in m.block_ops(block) {
                if m.regions(op).is_empty() {
                    continue;
                }
                if m.has_trait(op, Trait::Isolated) {
                    let outer = std::mem::take(&mut self.used);
                    for &r in m.regions(op) {
                        self.region(r, Counters::default());
                    }
                    self.used = outer;
                } else {
                    for &r in m.regions(op) {
                        self.region(r, counters);
                    }
                }
            }
        }
        for name in scope {
            self.used.remove(&name);
        }
    }
}

fn constant_name(module: &Module, op: Op) -> Option<String> {
    let constant = arith::Constant::cast(module, op)?;
    let attr = module.op_attr(constant.0, "value")?;
    Some(match module.attr_kind(attr) {
        AttrKind::Bool(b) => b.to_string(),
        AttrKind::Int(v, Type::I1) => (*v != 0).to_string(),
        AttrKind::Int(v, ty) => match module.type_kind(*ty) {
            TypeKind::Int(bits) => format!("c{v}_i{bits}"),
            _ => format!("c{v}"),
        },
        _ => "cst".to_string(),
    })
}

/// The blocks that jump to each block of a region, in order.
pub(crate) fn predecessors(module: &Module, region: Region) -> FxHashMap<Block, Vec<Block>> {
    let mut map: FxHashMap<Block, Vec<Block>> = FxHashMap::default();
    for &block in module.region_blocks(region) {
        if let Some(last) = module.last_op(block) {
            for &s in module.successors(last) {
                map.entry(s).or_default().push(block);
            }
        }
    }
    map
}
