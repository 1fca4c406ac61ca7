//! The memories of Ascend's cores, which `tle.dsa.ascend` names: how much each holds, and which ways lead from one to another.
//!
//! A buffer in one of them has its attribute as memory space, which is AscendNPU-IR's (`#hivm.address_space<ub>`). The numbers are those of
//! the Ascend 910B, as AscendNPU-IR's `NPUTargetSpec.td` states them.

use crate::attrs::AttrKind;
use crate::entity::Attr;
use crate::module::Module;

/// A memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Space {
    /// The name that kernels have for it.
    pub name: &'static str,
    /// Its attribute in IR.
    pub attribute: &'static str,
    /// How many bytes it has, for each core.
    pub bytes: u32,
    /// What addresses in it are multiples of.
    pub align: u32,
}

/// A way from one memory to another.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name of the memory that is read.
    pub from: &'static str,
    /// The name of the memory that is written.
    pub to: &'static str,
    /// The queue whose instructions go it.
    pub pipe: &'static str,
}

/// The attribute of the unified buffer.
pub const UB: &str = "#hivm.address_space<ub>";
/// The attribute of what lies between global memory and products.
pub const L1: &str = "#hivm.address_space<cbuf>";
/// The attribute of global memory.
pub const GM: &str = "#hivm.address_space<gm>";
/// The attribute of the memory that products are added up in.
pub const L0C: &str = "#hivm.address_space<cc>";
/// On a loop: no iteration reads from global memory what another one writes.
pub const PARALLEL: &str = "tle.parallel";

/// Global memory.
pub static GLOBAL: Space = Space { name: "GM", attribute: GM, bytes: u32::MAX, align: 1 };

/// The part of global memory through which the cores of a block hand each other what they computed. Each block has its own.
pub static WORKSPACE: Space = Space { name: "workspace", attribute: GM, bytes: 1 << 31, align: 512 };

/// The local memories.
pub static SPACES: [Space; 5] = [
    Space { name: "UB", attribute: UB, bytes: 192 << 10, align: 32 },
    Space { name: "L1", attribute: L1, bytes: 512 << 10, align: 32 },
    Space { name: "L0A", attribute: "#hivm.address_space<ca>", bytes: 64 << 10, align: 512 },
    Space { name: "L0B", attribute: "#hivm.address_space<cb>", bytes: 64 << 10, align: 512 },
    Space { name: "L0C", attribute: L0C, bytes: 128 << 10, align: 512 },
];

/// The ways. Vector and cube cores have memories of their own: from UB to L1 and from L0C to UB data go through global memory.
pub static ROUTES: [Route; 8] = [
    Route { from: "GM", to: "UB", pipe: "PIPE_MTE2" },
    Route { from: "UB", to: "GM", pipe: "PIPE_MTE3" },
    Route { from: "UB", to: "UB", pipe: "PIPE_V" },
    Route { from: "GM", to: "L1", pipe: "PIPE_MTE2" },
    Route { from: "L1", to: "L0A", pipe: "PIPE_MTE1" },
    Route { from: "L1", to: "L0B", pipe: "PIPE_MTE1" },
    Route { from: "L0C", to: "L1", pipe: "PIPE_FIX" },
    Route { from: "L0C", to: "GM", pipe: "PIPE_FIX" },
];

/// The local memory of this name.
pub fn space(name: &str) -> Option<&'static Space> {
    SPACES.iter().find(|s| s.name == name)
}

/// The memory that an attribute stands for.
pub fn by_attribute(attribute: &str) -> Option<&'static Space> {
    SPACES.iter().chain([&GLOBAL]).find(|s| s.attribute == attribute)
}

/// The chip, by the name that AscendNPU-IR has for it.
pub const DEVICE: &str = "Ascend910B1";

/// The text of a memory space.
pub fn text(module: &Module, attr: Attr) -> &str {
    match module.attr_kind(attr) {
        AttrKind::Opaque(text) => text,
        _ => "",
    }
}

/// The way from one memory to another, if there is one.
pub fn route(from: &Space, to: &Space) -> Option<&'static Route> {
    ROUTES.iter().find(|r| r.from == from.name && r.to == to.name)
}

/// The local memories, for messages.
pub fn names(of: impl Fn(&Space) -> String) -> String {
    SPACES.iter().map(of).collect::<Vec<_>>().join(", ")
}
