//! Layouts that a kernel gives: objects of the classes that `tle.gpu` has for them.

use tilewright_ir::dialect::ttg;
use tilewright_ir::{AttrKind, Encoding, SharedKind};
use tilewright_layout::TileLayout;

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::HostObject;
use crate::dtype::DType;
use crate::host::HostValue;
use crate::value::{Shape, Tensor, Value};

/// What `layout` may be.
const LAYOUTS: &str = "a tle.gpu.swizzled_shared_layout or tle.gpu.nv_mma_shared_layout";

/// More dimensions than those that a layout is without no tensor has.
const MOST_PARENTS: usize = 8;
/// The classes of layouts of tensors.
const ENCODINGS: [&str; 4] = ["BlockEncoding", "MmaEncoding", "DotOperandEncoding", "SlicedEncoding"];
/// The classes of layouts, those of buffers first.
pub(crate) const LAYOUT_CLASSES: [&str; 6] = [
    "swizzled_shared_layout",
    "nv_mma_shared_layout",
    ENCODINGS[0],
    ENCODINGS[1],
    ENCODINGS[2],
    ENCODINGS[3],
];

/// What a path of the library calls, if it is a layout's `make_default`.
pub(crate) fn default_maker(path: &str) -> Option<&str> {
    let maker = path.strip_prefix("tle.gpu.")?;
    LAYOUT_CLASSES[..2].contains(&maker.strip_suffix(".make_default")?).then_some(maker)
}

impl Evaluator<'_> {
    /// A layout made in a kernel, by its class or a function of that: the host makes it.
    pub(crate) fn make_layout(&mut self, maker: &str, args: CallArgs) -> Eval<Value> {
        let what = format!("the arguments of tle.gpu.{maker}");
        let constant = |e: &Self, v: &Value| v.to_host().ok_or_else(|| e.needs_constexpr(v, &what));
        let mut positional = Vec::new();
        for value in &args.positional {
            positional.push(constant(self, value)?);
        }
        let mut named = Vec::new();
        for (name, value) in &args.keywords {
            named.push(HostValue::Tuple([HostValue::str(name), constant(self, value)?].into()));
        }
        let given =
            [HostValue::str(maker), HostValue::Tuple(positional.into()), HostValue::Tuple(named.into())];
        let made = self.host.library("tle.gpu._layout", &given).map_err(|e| self.host_error(e))?;
        Ok(Value::from_host(made))
    }

    /// Row-major order.
    pub(super) fn plain_layout(&self, rank: usize) -> SharedKind {
        let order = (0..rank.max(1) as u32).rev().collect();
        SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order }
    }

    /// A layout that the kernel gives to a buffer.
    pub(super) fn given_layout(
        &mut self,
        args: &Args,
        given: &Value,
        element: &DType,
        shape: &Shape,
    ) -> Eval<SharedKind> {
        let object = match given {
            Value::Const(HostValue::Object(object)) => object.clone(),
            other => return Err(self.bad_argument(args, "layout", other, LAYOUTS)),
        };
        match &*object.kind {
            "swizzled_shared_layout" => self.swizzled_layout(&object, shape.len()),
            "nv_mma_shared_layout" => self.nv_mma_layout(&object, element, shape),
            _ => Err(self.bad_argument(args, "layout", given, LAYOUTS)),
        }
    }

    /// The integers that an attribute of a layout has.
    fn layout_numbers(&mut self, object: &HostObject, name: &str) -> Eval<Vec<u32>> {
        let found = self.host.attribute(object, name).map_err(|e| self.host_error(e))?;
        let items = match found {
            Some(HostValue::Tuple(items)) => items.to_vec(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let number = |item: &HostValue| match item {
            HostValue::Int(n) => u32::try_from(*n).ok(),
            HostValue::Bool(b) => Some(u32::from(*b)),
            _ => None,
        };
        let all: Option<Vec<u32>> = items.iter().map(number).collect();
        all.ok_or_else(|| self.error(format!("`{name}` of the layout must be positive integers")))
    }

    pub(super) fn swizzled_layout(&mut self, object: &HostObject, rank: usize) -> Eval<SharedKind> {
        let mut numbers = Vec::new();
        for name in ["vectorSize", "perPhase", "maxPhase", "order"] {
            numbers.push(self.layout_numbers(object, name)?);
        }
        let powers = numbers[..3].iter().all(|n| matches!(n[..], [n] if n.is_power_of_two()));
        if !powers || !is_order(&numbers[3], rank) {
            return Err(self.error(format!(
                "a layout of a buffer with {rank} dimensions needs powers of two and an order of as many, not {numbers:?}"
            )));
        }
        Ok(SharedKind::Swizzled {
            vec: numbers[0][0],
            per_phase: numbers[1][0],
            max_phase: numbers[2][0],
            order: numbers.swap_remove(3),
        })
    }

    /// The layout that tensor cores and the copy engine read, of the two last dimensions of a buffer.
    pub(super) fn nv_mma_layout(
        &mut self,
        object: &HostObject,
        element: &DType,
        shape: &Shape,
    ) -> Eval<SharedKind> {
        let (of, order) = (self.layout_numbers(object, "shape")?, self.layout_numbers(object, "order")?);
        let dtype = self.host.attribute(object, "elemType").map_err(|e| self.host_error(e))?;
        let (padded, swizzled) =
            (self.layout_numbers(object, "fp4Padded")?, self.layout_numbers(object, "swizzled")?);
        if of.len() != 2
            || !shape.ends_with(&of)
            || !matches!(&dtype, Some(HostValue::DType(d)) if d == element)
        {
            return Err(self.error(format!(
                "the tle.gpu.nv_mma_shared_layout is of shape {of:?}, and the buffer of shape {:?} and dtype {element}",
                shape.as_slice()
            )).note("a layout is of the two last dimensions of its buffer, and of its dtype").into());
        }
        if !is_order(&order, 2) {
            return Err(self.error(format!(
                "`order` of a tle.gpu.nv_mma_shared_layout is [1, 0] or [0, 1], not {order:?}"
            )));
        }
        if padded != [0] {
            return Err(self.not_supported_yet("a tle.gpu.nv_mma_shared_layout with fp4Padded=True"));
        }
        let element_bits = element.bits().max(8);
        let row = of[order[0] as usize] * element_bits / 8;
        let (swizzle_bytes, least) = match swizzled[..] {
            [0] => (0, 16),
            _ => ((1 << row.trailing_zeros()).min(128), 32),
        };
        if !row.is_multiple_of(least) || !of[order[1] as usize].is_multiple_of(8) {
            return Err(self.error(format!(
                "a tle.gpu.nv_mma_shared_layout needs rows of a multiple of {least} bytes, as many as a multiple of 8, not {of:?} of {element}"
            )));
        }
        Ok(SharedKind::NvmmaShared { swizzle_bytes, transposed: order[0] == 0, element_bits, rank: 2 })
    }

    /// `tle.gpu.set_layout(x, layout)`
    pub(super) fn set_layout(&mut self, args: &Args) -> Eval<Tensor> {
        let x = match args.get("x") {
            Value::Tensor(t) if t.is_block() => t.clone(),
            other => return Err(self.bad_argument(args, "x", other, "a tensor of one dimension or more")),
        };
        let object = match args.get("layout") {
            Value::Const(HostValue::Object(object)) if ENCODINGS.contains(&&*object.kind) => object.clone(),
            other => {
                let wanted = "a tle.gpu.BlockEncoding, MmaEncoding, DotOperandEncoding or SlicedEncoding";
                return Err(self.bad_argument(args, "layout", other, wanted));
            }
        };
        self.of_one_cta("tle.gpu.set_layout")?;
        let encoding = self.encoding_of_object(&object, 0)?;
        let layout = TileLayout::new(&encoding, &x.shape).map_err(|e| {
            self.error(format!("a layout that a tensor of shape {:?} cannot have: {e}", x.shape.as_slice()))
        })?;
        let warps = self.warps_here();
        if layout.num_warps() != warps {
            return Err(
                self.error(format!("a layout for {} warps, where {warps} run this", layout.num_warps()))
            );
        }
        let layout = self.module.attr(AttrKind::Encoding(encoding));
        let beside = self.module.uses(x.value).iter().map(|u| u.op);
        let others = beside.chain(self.module.defining_op(x.value));
        let mut others = others.filter_map(|op| ttg::SetLayout::cast(&self.module, op));
        if others.any(|other| other.layout(&self.module) != layout) {
            return Err(self
                .error("this tensor has another layout by an earlier tle.gpu.set_layout")
                .note("one tensor has one layout: leave one of them out")
                .into());
        }
        let value = ttg::SetLayout::build(&mut builder!(self), x.value, layout).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    /// The layout that an object says, in so many others.
    pub(super) fn encoding_of_object(&mut self, object: &HostObject, depth: usize) -> Eval<Encoding> {
        if depth > MOST_PARENTS {
            return Err(
                self.error(format!("a layout with more than {MOST_PARENTS} parents, one of the other"))
            );
        }
        if object.kind.as_ref() != "DotOperandEncoding" && object.kind.as_ref() != "SlicedEncoding" {
            let cga = self.host.attribute(object, "cga_layout").map_err(|e| self.host_error(e))?;
            if !matches!(&cga, None | Some(HostValue::None)) {
                return Err(self.not_supported_yet("`cga_layout` of layouts"));
            }
        }
        Ok(match &*object.kind {
            "BlockEncoding" => {
                let [size_per_thread, threads_per_warp, warps_per_cta, order] = self
                    .numbers_of(object, ["size_per_thread", "threads_per_warp", "warps_per_cta", "order"])?;
                let rank = order.len();
                let all = [&size_per_thread, &threads_per_warp, &warps_per_cta];
                let powers = all.iter().all(|v| v.len() == rank && v.iter().all(|n| n.is_power_of_two()));
                let lanes: u32 = threads_per_warp.iter().product();
                if !powers || !is_order(&order, rank) || lanes != super::WARP_SIZE {
                    return Err(self.error(format!(
                        "a tle.gpu.BlockEncoding has powers of two for each dimension, 32 threads a warp and an order of the dimensions, not {size_per_thread:?}, {threads_per_warp:?}, {warps_per_cta:?}, {order:?}"
                    )));
                }
                Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order }
            }
            "MmaEncoding" => {
                let [version, warps_per_cta, instr_shape] =
                    self.numbers_of(object, ["version", "warps_per_cta", "instr_shape"])?;
                let (major, minor) =
                    (version.first().copied().unwrap_or(0), version.get(1).copied().unwrap_or(0));
                let fits = match (major, &instr_shape[..]) {
                    (2, [16, 8]) => true,
                    (3, &[16, n, _]) => (8..=256).contains(&n) && n.is_multiple_of(8),
                    _ => false,
                };
                let powers = warps_per_cta.len() == 2 && warps_per_cta.iter().all(|n| n.is_power_of_two());
                if !fits || !powers || minor != 0 || major == 3 && !warps_per_cta[0].is_multiple_of(4) {
                    return Err(self.error(format!(
                        "a tle.gpu.MmaEncoding is of version 2 with instr_shape [16, 8], or of version 3 with [16, N, K] and 4 warps or more along the rows; not version {version:?}, {instr_shape:?}, {warps_per_cta:?}"
                    )));
                }
                Encoding::NvidiaMma { version_major: major, version_minor: minor, warps_per_cta, instr_shape }
            }
            kind => {
                let parent = match self.host.attribute(object, "parent").map_err(|e| self.host_error(e))? {
                    Some(HostValue::Object(parent)) if ENCODINGS.contains(&&*parent.kind) => parent,
                    _ => {
                        return Err(
                            self.error(format!("`parent` of a tle.gpu.{kind} must be a layout of tle.gpu"))
                        );
                    }
                };
                let parent = std::sync::Arc::new(self.encoding_of_object(&parent, depth + 1)?);
                if kind == "SlicedEncoding" {
                    let dim = self.number_of(object, "dim")?;
                    return Ok(Encoding::Slice { dim, parent });
                }
                let (op_idx, k_width) =
                    (self.number_of(object, "operand_index")?, self.number_of(object, "k_width")?);
                if op_idx > 1
                    || !matches!(*parent, Encoding::NvidiaMma { .. })
                    || !matches!(k_width, 1 | 2 | 4)
                {
                    return Err(self.error(
                        "a tle.gpu.DotOperandEncoding has `operand_index` 0 or 1, a tle.gpu.MmaEncoding as `parent`, and `k_width` 1, 2 or 4",
                    ));
                }
                Encoding::DotOperand { op_idx, parent, k_width }
            }
        })
    }

    fn numbers_of<const N: usize>(&mut self, object: &HostObject, names: [&str; N]) -> Eval<[Vec<u32>; N]> {
        let mut all = names.map(|_| Vec::new());
        for (slot, name) in all.iter_mut().zip(names) {
            *slot = self.layout_numbers(object, name)?;
        }
        Ok(all)
    }

    fn number_of(&mut self, object: &HostObject, name: &str) -> Eval<u32> {
        match self.layout_numbers(object, name)?[..] {
            [n] => Ok(n),
            _ => Err(self.error(format!("`{name}` of the layout must be one integer"))),
        }
    }

    /// `tle.gpu.memory_space(x, space)`
    pub(super) fn memory_space(&mut self, args: &Args) -> Eval<Tensor> {
        let x = match args.get("x") {
            Value::Tensor(t) if t.is_block() && !t.dtype.is_pointer() => t.clone(),
            other => return Err(self.bad_argument(args, "x", other, "a tensor of numbers")),
        };
        self.choice(args, "space", &[("shared_memory", ())])?;
        self.of_one_cta("tle.gpu.memory_space")?;
        let buffer = self.stored_in_buffer(&x)?;
        self.read(&buffer)
    }
}

/// Whether these are the dimensions, each once.
fn is_order(order: &[u32], rank: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..rank as u32)
}
