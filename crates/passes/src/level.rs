//! Levels of a `ttg` module on targets whose instructions take blocks of a whole warp (ML-Triton, section 2).
//!
//! What a tensor is follows from the level: of a work group, all of whose warps have parts of it, as its encoding says; what one warp
//! has for itself, of which the encoding says where it came from; what one instruction takes, without an encoding; or that, shared out among
//! lanes.

use tilewright_ir::{AttrKind, Module};

/// The attribute of the module.
const NAME: &str = "ttg.level";

/// Whose tensors those of a module are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A work group's: what a module is that says nothing else.
    WorkGroup,
    /// A warp's.
    Warp,
    /// An instruction's.
    Intrinsic,
    /// The same, shared out among the lanes of a warp, as its encoding says.
    Lane,
}

impl Level {
    /// The level of a module; `None` where it says one that there isn't.
    pub fn of(module: &Module) -> Option<Level> {
        match module.op_attr(module.root(), NAME).map(|attr| module.attr_kind(attr)) {
            None => Some(Level::WorkGroup),
            Some(AttrKind::Str(name)) if name == "warp" => Some(Level::Warp),
            Some(AttrKind::Str(name)) if name == "intrinsic" => Some(Level::Intrinsic),
            Some(AttrKind::Str(name)) if name == "lane" => Some(Level::Lane),
            Some(_) => None,
        }
    }

    /// Says so on the module.
    pub(crate) fn record(self, module: &mut Module) {
        let name = match self {
            Level::WorkGroup => return,
            Level::Warp => "warp",
            Level::Intrinsic => "intrinsic",
            Level::Lane => "lane",
        };
        let (root, name) = (module.root(), module.attr(AttrKind::Str(name.into())));
        module.set_attr(root, NAME, name);
    }
}
