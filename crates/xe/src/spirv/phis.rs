//! Parameters of blocks that are only ever one vector together.
//!
//! A dot in a loop takes its accumulators as a vector, made of parameters of the loop's block, and what the next iteration gets are the elements of its result.
//! As one parameter that is a vector they stay in one place.

use std::collections::HashMap;

use tilewright_llvm::view::Source;
use tilewright_llvm::{Block, Op, Value, View};

/// The vectors of a function's parameters.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The elements of each.
    pub elements: Vec<Vec<Value>>,
    /// Those of a block.
    pub of_block: HashMap<Block, Vec<usize>>,
    /// Which one a parameter is in, and where.
    pub place: HashMap<Value, (usize, usize)>,
}

impl Groups {
    /// Finds them.
    pub fn find(view: &View<'_>) -> Groups {
        let mut groups = Groups::default();
        for &block in view.blocks() {
            for inst in view.instructions(block).filter(|inst| inst.op == Op::Vector) {
                let Some(of) = groups.candidate(view, inst.args) else { continue };
                let number = groups.elements.len();
                groups.elements.push(inst.args.to_vec());
                groups.of_block.entry(of).or_default().push(number);
                for (at, &v) in inst.args.iter().enumerate() {
                    groups.place.insert(v, (number, at));
                }
            }
        }
        groups
    }

    /// The block whose parameters these are, each once and in no other vector.
    fn candidate(&self, view: &View<'_>, args: &[Value]) -> Option<Block> {
        if !matches!(args.len(), 4 | 8 | 16) {
            return None;
        }
        let Source::Parameter(of) = view.source(args[0]) else { return None };
        let free = |&v: &Value| view.source(v) == Source::Parameter(of) && !self.place.contains_key(&v);
        let once = args.iter().enumerate().all(|(i, v)| !args[..i].contains(v));
        (once && args.iter().all(free)).then_some(of)
    }

    /// The vector that these are the elements of, in order.
    pub fn whole(&self, args: &[Value]) -> Option<usize> {
        let &(number, _) = self.place.get(args.first()?)?;
        (self.elements[number] == args).then_some(number)
    }
}
