//! What an entry may run: the functions it calls, by name or by address, and the names that they mention.

use crate::ast::{Function, Init, Instr, Module, Operand, Stmt};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Functions by their number in [`Module::functions`].
#[derive(Default)]
pub(crate) struct Reach<'m> {
    /// Definitions that the entry may come to.
    pub functions: BTreeSet<usize>,
    /// Those whose address is taken.
    pub taken: BTreeSet<usize>,
    /// Those that may call themselves by name, directly or not.
    pub recursive: HashSet<usize>,
    /// Every name that an operand has.
    names: HashSet<&'m str>,
    numbers: HashMap<&'m str, usize>,
    calls: HashMap<usize, Vec<usize>>,
}

/// The function that a direct call names.
pub(crate) fn callee(i: &Instr) -> Option<&str> {
    i.operands.iter().find_map(|o| match o {
        Operand::Ident(n) => Some(n.as_str()),
        _ => None,
    })
}

impl<'m> Reach<'m> {
    pub fn new(module: &'m Module, entry: &'m Function) -> Reach<'m> {
        let mut r = Reach::default();
        for (n, g) in module.functions.iter().enumerate().filter(|(_, g)| g.body.is_some()) {
            r.numbers.entry(&g.name).or_insert(n);
        }
        let Some(&first) = r.numbers.get(entry.name.as_str()) else { return r };
        let mut left = vec![first];
        let mut seen = HashSet::from([first]);
        while let Some(n) = left.pop() {
            let mut found = vec![];
            if let Some(b) = &module.functions[n].body {
                r.body(module, n, b, &mut found);
            }
            left.extend(found.into_iter().filter(|&g| seen.insert(g)));
        }
        seen.remove(&first);
        r.functions = seen.into_iter().collect();
        r.recursive = r.functions.iter().copied().filter(|&g| r.returns_to(g)).collect();
        r
    }

    /// The definition of `name`.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub fn mentions(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn body(&mut self, module: &'m Module, of: usize, b: &'m [Stmt], found: &mut Vec<usize>) {
        for s in b {
            match s {
                Stmt::Block(b) => self.body(module, of, b, found),
                Stmt::Instr(i) => {
                    let called = (i.op == "call").then(|| callee(i).and_then(|n| self.number(n))).flatten();
                    if let Some(g) = called {
                        self.calls.entry(of).or_default().push(g);
                        found.push(g);
                    } else {
                        i.operands.iter().for_each(|o| self.operand(module, o, found));
                    }
                }
                _ => {}
            }
        }
    }

    fn operand(&mut self, module: &'m Module, o: &'m Operand, found: &mut Vec<usize>) {
        match o {
            Operand::Ident(n) | Operand::Offset(n, _) => self.name(module, n, found),
            Operand::Mem { base, coords, .. } => {
                self.operand(module, base, found);
                coords.iter().for_each(|o| self.operand(module, o, found));
            }
            Operand::Vector(v) | Operand::List(v) => {
                v.iter().for_each(|o| self.operand(module, o, found));
            }
            Operand::Not(o) => self.operand(module, o, found),
            Operand::Pair(a, b) => [a, b].into_iter().for_each(|o| self.operand(module, o, found)),
            _ => {}
        }
    }

    /// A name that is no direct call: what it holds the address of may be called.
    fn name(&mut self, module: &'m Module, name: &'m str, found: &mut Vec<usize>) {
        if !self.names.insert(name) {
            return;
        }
        if let Some(g) = self.number(name) {
            self.taken.insert(g);
            found.push(g);
        }
        for v in module.vars.iter().filter(|v| v.name == name) {
            for i in &v.init {
                if let Init::Symbol { name, .. } = i {
                    self.name(module, name, found);
                }
            }
        }
    }

    /// Whether calls by name lead from `g` back to it.
    fn returns_to(&self, g: usize) -> bool {
        let mut left = vec![g];
        let mut seen = HashSet::new();
        while let Some(n) = left.pop() {
            for &to in self.calls.get(&n).into_iter().flatten() {
                if to == g {
                    return true;
                }
                if seen.insert(to) {
                    left.push(to);
                }
            }
        }
        false
    }
}
