//! Part of the [verifier](mod@crate::verify): whether a layout is for as many threads and warps as there are, and blocked ones of an
//! operation's operands and results follow from each other.

use tilewright_layout::{Dim, TileLayout};

use crate::Encoding;
use crate::attrs::{AttrKind, AttrValue, text_list};
use crate::dialect::ttg::{Partitions, WarpSpecialize};
use crate::entity::{Op, Type};
use crate::index::Crossing;
use crate::module::Module;
use crate::text::print_type;

/// A blocked layout.
#[derive(Clone, PartialEq)]
struct Blocked {
    sizes: Vec<u32>,
    /// None, where the sizes are those of warps.
    threads: Option<Vec<u32>>,
    warps: Vec<u32>,
    ctas: Option<Vec<u32>>,
    order: Vec<u32>,
}

impl Blocked {
    fn of(m: &Module, ty: Type) -> Option<Blocked> {
        match m.attr_kind(m.encoding(ty)?) {
            AttrKind::Encoding(Encoding::Blocked {
                size_per_thread,
                threads_per_warp,
                warps_per_cta,
                order,
            }) => Some(Blocked {
                sizes: size_per_thread.clone(),
                threads: Some(threads_per_warp.clone()),
                warps: warps_per_cta.clone(),
                ctas: None,
                order: order.clone(),
            }),
            AttrKind::Encoding(Encoding::WarpBlocked { size_per_warp, warps_per_cta, order }) => {
                Some(Blocked {
                    sizes: size_per_warp.clone(),
                    threads: None,
                    warps: warps_per_cta.clone(),
                    ctas: None,
                    order: order.clone(),
                })
            }
            // One that is spread over CTAs is kept as text.
            AttrKind::Opaque(text) if text.starts_with("#ttg.blocked<") => Some(Blocked {
                sizes: text_list(text, "sizePerThread")?,
                threads: Some(text_list(text, "threadsPerWarp")?),
                warps: text_list(text, "warpsPerCTA")?,
                ctas: text_list(text, "CTAsPerCGA"),
                order: text_list(text, "order")?,
            }),
            _ => None,
        }
    }

    /// The same with other lists for dimensions.
    fn map(&self, f: impl Fn(&[u32], u32) -> Vec<u32>, order: Vec<u32>, last: u32) -> Blocked {
        Blocked {
            sizes: f(&self.sizes, last),
            threads: self.threads.as_ref().map(|threads| f(threads, 1)),
            warps: f(&self.warps, 1),
            ctas: self.ctas.as_ref().map(|ctas| f(ctas, 1)),
            order,
        }
    }

    /// Dimension i is this one's `order[i]`.
    fn permuted(&self, order: &[usize]) -> Blocked {
        let at = |d: u32| order.iter().position(|&o| o == d as usize).unwrap_or(0) as u32;
        let fast = self.order.iter().map(|&d| at(d)).collect();
        self.map(|list, _| order.iter().filter_map(|&d| list.get(d).copied()).collect(), fast, 1)
    }

    /// Whether the two elements along the innermost dimension lie in one thread, and in no other.
    fn has_pair_in_one_thread(&self) -> bool {
        let alone = |list: &[u32]| list.last() == Some(&1);
        self.sizes.last() == Some(&2)
            && self.threads.as_deref().is_none_or(alone)
            && alone(&self.warps)
            && self.ctas.as_deref().is_none_or(alone)
    }

    /// With an innermost dimension whose two elements lie in one thread.
    fn with_pair(&self) -> Blocked {
        let fast = std::iter::once(self.order.len() as u32).chain(self.order.iter().copied()).collect();
        self.map(|list, last| list.iter().copied().chain([last]).collect(), fast, 2)
    }

    /// Whether each thread has the same elements of a tensor of a type by another one, in whatever order.
    fn agrees(&self, other: &Blocked, m: &Module, ty: Type) -> bool {
        if self == other {
            return true;
        }
        let layout = |b: &Blocked| {
            let (warps_per_cta, order) = (b.warps.clone(), b.order.clone());
            let encoding = match b.threads.clone() {
                Some(threads_per_warp) => {
                    let size_per_thread = b.sizes.clone();
                    Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order }
                }
                None => Encoding::WarpBlocked { size_per_warp: b.sizes.clone(), warps_per_cta, order },
            };
            TileLayout::new(&encoding, m.shape(ty)?).ok()
        };
        let (Some(a), Some(b)) = (layout(self), layout(other)) else { return false };
        let bases = |l: &TileLayout, dim| l.linear().flat_bases(dim).to_vec();
        let sorted = |l: &TileLayout| {
            let mut registers = bases(l, Dim::Register);
            registers.sort_unstable();
            registers
        };
        self.ctas == other.ctas
            && (a.unit(), a.reps()) == (b.unit(), b.reps())
            && [Dim::Lane, Dim::Warp].iter().all(|&dim| bases(&a, dim) == bases(&b, dim))
            && sorted(&a) == sorted(&b)
    }
}

/// How many warps run an operation: those of its partition, of its function, or of the module.
fn warps_of(m: &Module, op: Op) -> Option<u32> {
    let mut at = op;
    while let Some(parent) = m.parent_op(at) {
        if let Some(partitions) = Partitions::cast(m, parent) {
            let region = m.parent_block(at).and_then(|b| m.block_region(b))?;
            let index = m.regions(partitions.0).iter().position(|&r| r == region)?;
            let holder = WarpSpecialize::cast(m, m.parent_op(parent)?)?;
            return u32::try_from(*holder.partition_num_warps(m).get(index)?).ok();
        }
        if let Some(n) = number(m, parent, "ttg.num-warps") {
            return Some(n);
        }
        at = parent;
    }
    None
}

fn number(m: &Module, op: Op, name: &str) -> Option<u32> {
    i32::read(m, m.op_attr(op, name)).and_then(|n| u32::try_from(n).ok())
}

/// What the module around an operation says.
fn of_module(m: &Module, op: Op, name: &str) -> Option<u32> {
    std::iter::successors(Some(op), |&at| m.parent_op(at)).find_map(|at| number(m, at, name))
}

/// Checks blocked layouts of two tensors whose dimensions are permuted, or of which one has the elements of several as its innermost dimension:
/// threads keep what they have.
pub(crate) fn follows(m: &Module, crossing: Option<&Crossing>, a: Type, b: Type) -> Result<(), String> {
    let (Some(from), Some(to)) = (Blocked::of(m, a), Blocked::of(m, b)) else { return Ok(()) };
    let fits = match crossing {
        Some(Crossing::Permute(order)) => from.permuted(order).agrees(&to, m, b),
        Some(Crossing::AppendMember) => from.with_pair().agrees(&to, m, b),
        // A split of a pair that several threads share, or hold together, may have its result in any layout: values change threads there.
        Some(Crossing::DropMember) if !from.has_pair_in_one_thread() => true,
        Some(Crossing::DropMember) => to.with_pair().agrees(&from, m, a),
        _ => true,
    };
    let [a, b] = [a, b].map(|ty| print_type(m, ty));
    if fits { Ok(()) } else { Err(format!("the layout of {b} does not follow from that of {a}")) }
}

/// Checks the layout of a result against what the module says of its machine.
pub(crate) fn fits_machine(m: &Module, op: Op, ty: Type) -> Result<(), String> {
    let Some(blocked) = Blocked::of(m, ty).filter(|_| m.is_tensor(ty)) else { return Ok(()) };
    let rank = m.shape(ty).map_or(0, <[u32]>::len);
    if blocked.order.len() != rank {
        return Err(format!("the layout of {} has another number of dimensions than it", print_type(m, ty)));
    }
    let product = |list: &[u32]| list.iter().fold(1u32, |n, &x| n.saturating_mul(x));
    let (threads, warps) = (blocked.threads.as_deref().map(product), product(&blocked.warps));
    let wrong = |found: u32, what: &str, n: u32| {
        Err(format!("the layout of {} is for {found} {what}, but there are {n}", print_type(m, ty)))
    };
    match (of_module(m, op, "ttg.threads-per-warp"), threads) {
        (Some(n), Some(threads)) if n != threads => return wrong(threads, "threads of a warp", n),
        _ => {}
    }
    match warps_of(m, op) {
        Some(n) if n != warps => return wrong(warps, "warps", n),
        _ => {}
    }
    match (blocked.ctas.as_deref().map(product), of_module(m, op, "ttg.num-ctas")) {
        (Some(found), Some(n)) if found != n => wrong(found, "CTAs", n),
        _ => Ok(()),
    }
}
