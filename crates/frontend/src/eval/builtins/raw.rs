//! `tle.raw.call` and its like: the author's own code in another language.
//!
//! What the function is made of the host says (`tle.raw._function`): it has compiled it where that is to be done. Tensors are handed over in
//! registers, in a stated distribution, or in shared memory: then they are stored to buffers here, and outputs loaded from there, so that
//! the code is given numbers, pointers and registers alone, and barriers stand where those buffers want them.

use std::sync::Arc;

use ruff_python_ast::{Expr, ExprCall};
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::tt::{self, RawLanguage};
use tilewright_ir::dialect::ttg;
use tilewright_ir::{AttrKind, Encoding, SharedKind, Type};
use tilewright_layout::TileLayout;

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use super::layouts::LAYOUT_CLASSES;
use super::local::SHARED_MEMORY;
use crate::HostObject;
use crate::dtype::{DType, Scalar};
use crate::host::{HostValue, RAW_FUNCTION};
use crate::value::{Buffer, Shape, Tensor, Value};

/// What the host says of a function.
struct Raw {
    name: String,
    language: Arc<str>,
    symbol: Arc<str>,
    /// The text that goes into the kernel; nothing where it is not compiled, for the CPU executor.
    source: Arc<str>,
    /// How many parameters the function has, where it has a number of them.
    count: Option<usize>,
    /// Whether tensors are handed over in registers if the call says nothing.
    in_registers: bool,
    parameters: Vec<Parameter>,
    threads_dim: Option<i128>,
    /// Whether each call says what it writes.
    is_deferred: bool,
}

struct Parameter {
    name: String,
    is_output: bool,
    /// `tensor`, `memref`, `ptr` or `scalar`, with the shape (-1 for any extent), the element and the address space; nothing where unsaid.
    declared: Vec<HostValue>,
}

/// How a tensor is handed over.
#[derive(Clone)]
enum Place {
    Registers(Option<Arc<HostObject>>),
    Shared(Lie),
}

/// How a buffer lies in memory.
#[derive(Clone)]
enum Lie {
    /// As the compiler chooses; what is made for a tensor in row-major order.
    Own,
    /// In an order of the dimensions, the fastest first.
    Order(Vec<u32>),
    /// Swizzled by so many bytes, as TMA and tensor cores have it.
    Swizzled(u32),
    /// In a layout that the kernel names.
    Layout(Arc<HostObject>),
}

/// An argument as the code is given it.
pub(super) enum Given {
    /// A number, pointer or tensor in registers.
    Direct(Tensor, Option<Encoding>),
    /// A buffer, with the tensor that it was made for.
    Memory(Buffer, Option<Tensor>, Lying),
}

/// How a buffer that is handed over lies.
pub(super) enum Lying {
    /// Element by element, in an order of the dimensions, the fastest first.
    Order(Vec<u32>),
    /// As a layout has it that the call names.
    Layout(SharedKind),
}

/// A parameter of the operation.
struct Operand {
    name: String,
    value: tilewright_ir::Value,
    encoding: Option<Encoding>,
    is_output: bool,
}

/// Keys and values of a dictionary.
type Entries = Arc<[(Value, Value)]>;

impl Evaluator<'_> {
    /// `tle.raw.call(func, args, …)`, and for buffers `tle.raw.call_smem`.
    pub(super) fn raw_call(&mut self, args: &Args) -> Eval<Value> {
        self.of_one_cta("tle.raw.call")?;
        let object = match args.get("func") {
            Value::Const(HostValue::Object(object)) if &*object.kind == RAW_FUNCTION => object.clone(),
            other => {
                return Err(self.bad_argument(
                    args,
                    "func",
                    other,
                    "a function marked by @tle.raw.dialect or @tle.raw.language",
                ));
            }
        };
        let values = match args.get("args") {
            Value::Tuple(t) => t.items.clone(),
            other => {
                return Err(self.bad_argument(args, "args", other, "a list of the function's arguments"));
            }
        };
        self.str_arg(args, "hint")?;
        let raw = self.described(&object, values.len())?;
        let is_mlir = &*raw.language == "mlir";
        if raw.source.is_empty() && !is_mlir {
            return Err(self.runs_elsewhere(&raw));
        }
        let mut outputs = self.outputs_of(args, &raw, values.len())?;
        let places = self.places(args, &raw, &values)?;
        let threads = self.hardware(args, &raw)?;
        let mut given = Vec::new();
        for (i, value) in values.iter().enumerate() {
            given.push(self.given(&raw, i, value, places[i].clone())?);
        }
        if is_mlir {
            let returned = self.run_mlir(&object, &given, &mut outputs, &threads)?;
            let written = self.results_of(&values, given, &outputs, Vec::new())?;
            self.written_beside = returned.is_some();
            return Ok(returned.unwrap_or(written));
        }
        let results = self.emit_call(&raw, &given, &outputs, threads)?;
        self.results_of(&values, given, &outputs, results)
    }

    /// What the host says of a function, compiled for the target.
    fn described(&mut self, object: &Arc<HostObject>, given: usize) -> Eval<Raw> {
        let target = self.target.filter(|t| t.starts_with("cuda")).map_or(HostValue::None, HostValue::str);
        let asked = [HostValue::Object(object.clone()), target];
        let said =
            self.host.library("tle.raw._function._describe", &asked).map_err(|e| self.host_error(e))?;
        let HostValue::Tuple(items) = said else {
            return Err(self.error("internal: a function of tle.raw without a description"));
        };
        let [name, language, symbol, source, count, in_registers, parameters, threads_dim, deferred] =
            &items[..]
        else {
            return Err(self.error("internal: a function of tle.raw with another description"));
        };
        let text = |v: &HostValue| match v {
            HostValue::Str(s) => s.clone(),
            _ => "".into(),
        };
        let number = |v: &HostValue| match v {
            HostValue::Int(n) => Some(*n),
            _ => None,
        };
        let mut all = Vec::new();
        if let HostValue::Tuple(parameters) = parameters {
            for parameter in parameters.iter() {
                let HostValue::Tuple(parts) = parameter else { continue };
                let [name, is_output, declared] = &parts[..] else { continue };
                let declared = match declared {
                    HostValue::Tuple(parts) => parts.to_vec(),
                    _ => Vec::new(),
                };
                all.push(Parameter {
                    name: text(name).to_string(),
                    is_output: is_output.truth() == Some(true),
                    declared,
                });
            }
        }
        let name = text(name).to_string();
        if all.is_empty() {
            let numbered = (0..given).map(|i| Parameter {
                name: format!("arg{i}"),
                is_output: false,
                declared: Vec::new(),
            });
            all.extend(numbered);
        }
        if all.len() != given {
            let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
            let names = names.join(", ");
            return Err(self
                .error(format!("`{name}` takes {} arguments ({names}), but {given} are given", all.len())));
        }
        Ok(Raw {
            name,
            language: text(language),
            symbol: text(symbol),
            source: text(source),
            count: number(count).and_then(|n| usize::try_from(n).ok()),
            in_registers: in_registers.truth() == Some(true),
            parameters: all,
            threads_dim: number(threads_dim),
            is_deferred: deferred.truth() == Some(true),
        })
    }

    /// What to say where there is nobody who runs a language.
    fn runs_elsewhere(&self, raw: &Raw) -> super::super::Error {
        let here = self.target.filter(|&t| t != "interp").unwrap_or("the CPU executor");
        self.error(format!("not supported on {here}: `{}`, which is {} code", raw.name, raw.language))
            .of(Kind::Unsupported)
            .note("a GPU of NVIDIA's runs it, and the simulator (TILEWRIGHT_BACKEND=ptxsim); functions in MLIR run everywhere")
            .into()
    }

    /// The numbers of the arguments that the function writes.
    fn outputs_of(&mut self, args: &Args, raw: &Raw, count: usize) -> Eval<Vec<usize>> {
        let Some(given) = args.optional("output_indices").cloned() else {
            if raw.is_deferred {
                return Err(self
                    .error(format!("`{}` is deferred: each call says which arguments it writes", raw.name))
                    .note("give output_indices=[…], the numbers of these arguments")
                    .into());
            }
            return Ok((0..count).filter(|&i| raw.parameters[i].is_output).collect());
        };
        let mut all = Vec::new();
        for index in self.ints(&given, "`output_indices` of tle.raw.call")? {
            let at = usize::try_from(index).ok().filter(|&i| i < count && !all.contains(&i));
            all.push(at.ok_or_else(|| {
                self.error(format!(
                    "`output_indices` has {index}: they are numbers of the {count} arguments, each once"
                ))
            })?);
        }
        Ok(all)
    }

    // ---- layout and hardware --------------------------------------------------------------------------------

    /// How each argument is handed over.
    fn places(&mut self, args: &Args, raw: &Raw, values: &[Value]) -> Eval<Vec<Place>> {
        let default = if raw.in_registers { Place::Registers(None) } else { Place::Shared(Lie::Own) };
        let mut places: Vec<Place> = raw
            .parameters
            .iter()
            .map(|p| match p.declared.first() {
                Some(HostValue::Str(kind)) if &**kind == "memref" || &**kind == "ptr" => {
                    Place::Shared(Lie::Own)
                }
                _ => default.clone(),
            })
            .collect();
        let Some(layout) = args.optional("layout").cloned() else { return Ok(places) };
        let Some(entries) = self.entries_of(&layout)? else {
            return Err(self.bad_argument(
                args,
                "layout",
                &layout,
                "a dictionary with arguments of the call as its keys",
            ));
        };
        for (key, wanted) in entries.iter() {
            // A tensor may be given several times.
            let is_meant = |i: usize| match key {
                Value::Tensor(t) => values[i].as_tensor().is_some_and(|v| v.value == t.value),
                Value::Const(HostValue::Str(name)) => raw.parameters[i].name == **name,
                Value::Const(HostValue::Int(number)) => *number == i as i128,
                _ => false,
            };
            let meant: Vec<usize> = (0..values.len()).filter(|&i| is_meant(i)).collect();
            if meant.is_empty() {
                return Err(self
                    .error(format!(
                        "`layout` of tle.raw.call has the key {key}, which is no tensor among the arguments"
                    ))
                    .note("a key is one of the arguments, its parameter's name, or its number")
                    .into());
            }
            let place = self.place(wanted)?;
            meant.into_iter().for_each(|i| places[i] = place.clone());
        }
        Ok(places)
    }

    /// What a dictionary holds, one that the kernel writes or a constant; nothing of any other value.
    fn entries_of(&mut self, value: &Value) -> Eval<Option<Entries>> {
        let object = match value {
            Value::Dict(entries) => return Ok(Some(entries.clone())),
            Value::Const(HostValue::Object(object)) => object.clone(),
            _ => return Ok(None),
        };
        let asked = [HostValue::Object(object)];
        let entries =
            self.host.library("tle.raw._function._entries", &asked).map_err(|e| self.host_error(e))?;
        let HostValue::Tuple(entries) = entries else { return Ok(None) };
        let pairs = entries.iter().filter_map(|entry| match entry {
            HostValue::Tuple(pair) => {
                let [key, value] = &pair[..] else { return None };
                Some((Value::from_host(key.clone()), Value::from_host(value.clone())))
            }
            _ => None,
        });
        Ok(Some(pairs.collect()))
    }

    fn place(&mut self, wanted: &Value) -> Eval<Place> {
        let wrong = |e: &Self, what: String| -> super::super::Error {
            e.error(format!("`layout` of tle.raw.call: {what}"))
                .note("write {\"space\": \"shared\", \"order\": [1, 0]}, {\"space\": \"shared\", \"swizzle\": 128}, {\"space\": \"registers\"} or a tle.gpu.BlockEncoding")
                .into()
        };
        let known = self.entries_of(wanted)?;
        let entries = match wanted {
            _ if known.is_some() => known.unwrap_or_default(),
            Value::Const(HostValue::Object(object)) if LAYOUT_CLASSES[..2].contains(&&*object.kind) => {
                return Ok(Place::Shared(Lie::Layout(object.clone())));
            }
            Value::Const(HostValue::Object(object)) => return Ok(Place::Registers(Some(object.clone()))),
            other => return Err(wrong(self, format!("{other} is no layout"))),
        };
        let (mut space, mut order, mut swizzle, mut encoding) = (None, None, None, None);
        for (key, value) in entries.iter() {
            match (key, value) {
                (Value::Const(HostValue::Str(k)), Value::Const(HostValue::Str(s))) if &**k == "space" => {
                    space = Some(s.clone())
                }
                (Value::Const(HostValue::Str(k)), _) if &**k == "order" => {
                    let numbers = self.ints(value, "`order` of a layout")?;
                    order = Some(numbers.into_iter().map(|n| n as u32).collect::<Vec<_>>());
                }
                (Value::Const(HostValue::Str(k)), Value::Const(HostValue::Int(bytes)))
                    if &**k == "swizzle" && [32, 64, 128].contains(bytes) =>
                {
                    swizzle = Some(*bytes as u32);
                }
                (Value::Const(HostValue::Str(k)), Value::Const(HostValue::Object(object)))
                    if &**k == "encoding" =>
                {
                    encoding = Some(object.clone());
                }
                _ => return Err(wrong(self, format!("the key {key} with {value} means nothing"))),
            }
        }
        match space.as_deref() {
            Some("shared") if encoding.is_none() => match (order, swizzle) {
                (Some(_), Some(_)) => Err(wrong(self, "a swizzle has an order of its own".into())),
                (None, Some(bytes)) => Ok(Place::Shared(Lie::Swizzled(bytes))),
                (order, None) => Ok(Place::Shared(order.map_or(Lie::Own, Lie::Order))),
            },
            Some("registers") if order.is_none() && swizzle.is_none() => Ok(Place::Registers(encoding)),
            Some("shared") => Err(wrong(self, "in shared, `encoding` means nothing".into())),
            Some("registers") => {
                let key = if order.is_some() { "order" } else { "swizzle" };
                Err(wrong(self, format!("in registers, `{key}` means nothing")))
            }
            Some(other) => Err(wrong(self, format!("there is no space \"{other}\""))),
            None => Err(wrong(self, "a `space` is missing".into())),
        }
    }

    /// The extents of the threads that the call asks for; none for all.
    fn hardware(&mut self, args: &Args, raw: &Raw) -> Eval<Vec<u32>> {
        let Some(given) = args.optional("hardware").cloned() else { return Ok(Vec::new()) };
        let Some(entries) = self.entries_of(&given)? else {
            return Err(self.bad_argument(
                args,
                "hardware",
                &given,
                "a dictionary such as {\"threads\": (128,)}",
            ));
        };
        let mut threads = Vec::new();
        for (key, value) in entries.iter() {
            match key {
                Value::Const(HostValue::Str(k)) if &**k == "threads" => {
                    let numbers = self.ints(value, "`threads` of `hardware`")?;
                    if raw.threads_dim.is_some_and(|n| n != numbers.len() as i128) {
                        return Err(self.error(format!(
                            "`{}` is declared with threads_dim={}, but `threads` of `hardware` has {} numbers",
                            raw.name,
                            raw.threads_dim.unwrap_or(0),
                            numbers.len()
                        )));
                    }
                    let fits = (1..=3).contains(&numbers.len())
                        && numbers.iter().all(|&n| (1..=1024).contains(&n))
                        && numbers.iter().map(|&n| i64::from(n)).product::<i64>() <= 1024;
                    if !fits {
                        return Err(self
                            .error(format!(
                                "`threads` of `hardware` are the extents of 1 to 1024 threads along 1 to 3 dimensions, not {numbers:?}"
                            )));
                    }
                    threads = numbers.iter().map(|&n| n as u32).collect();
                }
                other => {
                    return Err(
                        self.error(format!("`hardware` of tle.raw.call knows `threads`, not {other}"))
                    );
                }
            }
        }
        Ok(threads)
    }

    // ---- arguments --------------------------------------------------------------------------------------------

    /// An argument as the code is given it.
    fn given(&mut self, raw: &Raw, i: usize, value: &Value, place: Place) -> Eval<Given> {
        let parameter = &raw.parameters[i];
        let given = match value {
            Value::Buffer(buffer) => {
                let buffer = self.own_buffer(buffer)?;
                let lying = self.lying(&buffer, place, parameter)?;
                Given::Memory(buffer, None, lying)
            }
            Value::Tensor(t) if t.is_block() => match place {
                Place::Registers(object) => {
                    let encoding = self.distribution(t, object)?;
                    Given::Direct(t.clone(), Some(encoding))
                }
                Place::Shared(lie) if !t.dtype.is_pointer() => {
                    let kind = self.layout_for(&t.dtype, &t.shape, lie, parameter)?;
                    let lying = match &kind {
                        SharedKind::Swizzled { max_phase: 1, order, .. } => Lying::Order(order.clone()),
                        _ => Lying::Layout(kind.clone()),
                    };
                    let ty = self.buffer_type(&t.dtype, &t.shape, Some(kind), SHARED_MEMORY);
                    let initial = self.stored_form(t)?;
                    let handle = ttg::LocalAlloc::build(&mut builder!(self), Some(initial.value), ty)
                        .result(&self.module);
                    Given::Memory(
                        super::local::known_buffer(handle, t.dtype.clone(), t.shape.clone()),
                        Some(t.clone()),
                        lying,
                    )
                }
                Place::Shared(_) => Given::Direct(t.clone(), Some(self.distribution(t, None)?)),
            },
            Value::Tensor(t) => Given::Direct(t.clone(), None),
            Value::Const(c) if crate::fold::number(c).is_some() => {
                let declared = match parameter.declared.get(2) {
                    Some(HostValue::Str(name)) => Scalar::parse(name),
                    _ => None,
                };
                let number = match declared {
                    Some(scalar) => self.scalar_constant(c, &scalar.into())?,
                    None => self.tensor_of(value)?,
                };
                Given::Direct(number, None)
            }
            other => {
                return Err(self
                    .error(format!("the argument `{}` of `{}` is {other}", parameter.name, raw.name))
                    .note("functions of tle.raw take tensors, numbers, pointers and buffers")
                    .into());
            }
        };
        self.check_declared(raw, parameter, &given)?;
        Ok(given)
    }

    /// The layout of the buffer that a tensor is handed over in.
    fn layout_for(
        &mut self,
        dtype: &DType,
        shape: &Shape,
        lie: Lie,
        parameter: &Parameter,
    ) -> Eval<SharedKind> {
        match lie {
            Lie::Own => Ok(self.plain_layout(shape.len())),
            Lie::Order(order) => {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                if !sorted.into_iter().eq(0..shape.len() as u32) {
                    return Err(self.error(format!(
                        "the `order` {order:?} of `{}` is none of {} dimensions",
                        parameter.name,
                        shape.len()
                    )));
                }
                Ok(SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order })
            }
            Lie::Swizzled(swizzle_bytes) => {
                let element_bits = dtype.bits().max(8);
                let [.., rows, row] = shape[..] else {
                    return Err(self
                        .error(format!("a swizzle of `{}`, which has not two dimensions", parameter.name)));
                };
                if !(row * element_bits / 8).is_multiple_of(swizzle_bytes) || rows % 8 != 0 {
                    return Err(self.error(format!(
                        "a swizzle of {swizzle_bytes} bytes of `{}` needs rows of a multiple of as many bytes, as many as a multiple of 8, not {:?} of {dtype}",
                        parameter.name,
                        shape.as_slice()
                    )));
                }
                Ok(SharedKind::NvmmaShared { swizzle_bytes, transposed: false, element_bits, rank: 2 })
            }
            Lie::Layout(object) if &*object.kind == LAYOUT_CLASSES[0] => {
                self.swizzled_layout(&object, shape.len())
            }
            Lie::Layout(object) => self.nv_mma_layout(&object, dtype, shape),
        }
    }

    /// How a buffer is handed over: element by element, unless the call says how it lies.
    fn lying(&mut self, buffer: &Buffer, place: Place, parameter: &Parameter) -> Eval<Lying> {
        let ty = self.module.value_type(buffer.handle.value);
        let encoding = self.module.encoding(ty).and_then(|e| self.module.encoding_of(e)).cloned();
        let wanted = match place {
            Place::Shared(lie @ (Lie::Swizzled(_) | Lie::Layout(_))) => {
                self.layout_for(&buffer.element(), &buffer.shape, lie, parameter)?
            }
            // What says nothing of an order has the one of the buffer.
            _ => {
                return Ok(Lying::Order(match encoding {
                    Some(Encoding::Shared(SharedKind::Swizzled { order, .. }))
                        if order.len() == buffer.shape.len() =>
                    {
                        order
                    }
                    _ => (0..buffer.shape.len() as u32).rev().collect(),
                }));
            }
        };
        match encoding {
            Some(Encoding::Shared(has)) if has != wanted => Err(self.error(format!(
                "`layout` says that the buffer `{}` lies in another way than tle.gpu.alloc says",
                parameter.name
            ))),
            _ => Ok(Lying::Layout(wanted)),
        }
    }

    /// The distribution of a tensor that is handed over in registers: what is said, or its elements in row-major order, to one thread after
    /// the other.
    fn distribution(&mut self, t: &Tensor, said: Option<Arc<HostObject>>) -> Eval<Encoding> {
        let warps = self.warps_here();
        let Some(object) = said else {
            let order: Vec<u32> = (0..t.shape.len() as u32).rev().collect();
            return Ok(Encoding::default_blocked(&t.shape, warps, 1, &order));
        };
        let encoding = self.encoding_of_object(&object, 0)?;
        let layout = TileLayout::new(&encoding, &t.shape).map_err(|e| {
            self.error(format!("a layout that a tensor of shape {:?} cannot have: {e}", t.shape.as_slice()))
        })?;
        if layout.num_warps() != warps {
            return Err(
                self.error(format!("a layout for {} warps, where {warps} run this", layout.num_warps()))
            );
        }
        Ok(encoding)
    }

    /// That an argument is what the function says.
    fn check_declared(&self, raw: &Raw, parameter: &Parameter, given: &Given) -> Eval<()> {
        let [HostValue::Str(kind), shape, element, space] = &parameter.declared[..] else { return Ok(()) };
        let (is, dtype, own): (&str, DType, &[u32]) = match given {
            Given::Direct(t, _) if t.is_block() => ("tensor", t.dtype.clone(), &t.shape),
            Given::Direct(t, _) if t.dtype.is_pointer() => ("ptr", t.dtype.clone(), &[]),
            Given::Direct(t, _) => ("scalar", t.dtype.clone(), &[]),
            Given::Memory(b, of, _) => {
                (if of.is_some() { "tensor" } else { "buffer" }, b.element(), &b.shape)
            }
        };
        let fits = match &**kind {
            "tensor" => matches!(is, "tensor" | "buffer"),
            "memref" => matches!(is, "tensor" | "buffer" | "ptr"),
            "ptr" => match space {
                HostValue::Int(3) => matches!(is, "tensor" | "buffer" | "ptr"),
                _ => is == "ptr",
            },
            _ => is == "scalar",
        };
        let same_element = match (element, dtype.as_scalar()) {
            (HostValue::Str(wanted), Some(scalar)) => {
                // Integers of MLIR have no sign.
                Scalar::parse(wanted)
                    .is_none_or(|w| w.bits() == scalar.bits() && w.is_float() == scalar.is_float())
            }
            _ => true,
        };
        let same_shape = match shape {
            HostValue::Tuple(wanted) if is != "ptr" && &**kind != "scalar" => {
                wanted.len() == own.len()
                    && wanted
                        .iter()
                        .zip(own)
                        .all(|(w, &n)| matches!(w, HostValue::Int(w) if *w == -1 || *w == i128::from(n)))
            }
            _ => true,
        };
        if fits && same_element && same_shape {
            return Ok(());
        }
        let shown = |v: &HostValue| match v {
            HostValue::Tuple(extents) => {
                let each = extents
                    .iter()
                    .map(|n| if matches!(n, HostValue::Int(-1)) { "?".into() } else { n.to_string() });
                format!(" of shape [{}]", each.collect::<Vec<_>>().join(", "))
            }
            HostValue::Str(s) => format!(" of {s}"),
            _ => String::new(),
        };
        let own_shape = if own.is_empty() { String::new() } else { format!(" of shape {own:?}") };
        Err(self.error(format!(
            "`{}` of `{}` is declared as a {kind}{}{}, but the argument is a {is}{own_shape} of {dtype}",
            parameter.name,
            raw.name,
            shown(shape),
            shown(element),
        )))
    }

    // ---- the operation ----------------------------------------------------------------------------------------

    /// Emits the call, and gives the tensors in registers that it writes their values behind it.
    fn emit_call(
        &mut self,
        raw: &Raw,
        given: &[Given],
        outputs: &[usize],
        threads: Vec<u32>,
    ) -> Eval<Vec<tilewright_ir::Value>> {
        let records = self.records(raw, given);
        let mut operands = Vec::new();
        for (i, argument) in given.iter().enumerate() {
            let (name, is_output) = (raw.parameters[i].name.clone(), outputs.contains(&i));
            match argument {
                Given::Direct(t, encoding) => {
                    let is_output = is_output || t.dtype.is_pointer() && !t.is_block();
                    operands.push(Operand { name, value: t.value, encoding: encoding.clone(), is_output });
                }
                Given::Memory(buffer, _, lying) => {
                    let pointer = self.first_element(buffer)?;
                    let encoding = match lying {
                        Lying::Order(_) => None,
                        Lying::Layout(kind) => Some(Encoding::Shared(kind.clone())),
                    };
                    operands.push(Operand { name: name.clone(), value: pointer.value, encoding, is_output });
                    match lying {
                        Lying::Order(order) if records => {
                            self.record(&name, pointer.value, &buffer.shape, order, &mut operands)?;
                        }
                        Lying::Layout(_) if records => {
                            return Err(self
                                .error(format!("`{name}` is swizzled, and its record has strides"))
                                .note("let the function have a pointer as its parameter")
                                .into());
                        }
                        _ => {}
                    }
                }
            }
        }
        let language = RawLanguage::from_keyword(&raw.language)
            .ok_or_else(|| self.error(format!("internal: the language {}", raw.language)))?;
        // Inputs first.
        let mut sorted: Vec<usize> = (0..operands.len()).collect();
        sorted.sort_by_key(|&i| operands[i].is_output);
        let order =
            (0..operands.len()).map(|i| sorted.iter().position(|&s| s == i).unwrap_or(0) as i32).collect();
        let of = |is_output: bool| -> Vec<_> {
            operands.iter().filter(|o| o.is_output == is_output).map(|o| o.value).collect()
        };
        let (inputs, written) = (of(false), of(true));
        let mut layouts = Vec::new();
        for &i in &sorted {
            layouts.push(self.module.attr(match operands[i].encoding.clone() {
                Some(encoding) => AttrKind::Encoding(encoding),
                None => AttrKind::Unit,
            }));
        }
        let layouts = self.module.attr(AttrKind::Array(layouts));
        let types: Vec<Type> = written
            .iter()
            .map(|&v| self.module.value_type(v))
            .filter(|&ty| self.module.pointee_type(ty).is_none())
            .collect();
        let names = operands.iter().map(|o| o.name.clone()).collect();
        let op = tt::RawCall::build(
            &mut builder!(self),
            &inputs,
            &written,
            language,
            raw.symbol.to_string(),
            raw.source.to_string(),
            names,
            order,
            layouts,
            threads.iter().map(|&n| n as i32).collect(),
            &types,
        );
        Ok(op.results(&self.module).to_vec())
    }

    /// Whether buffers are handed over as records (allocated pointer, aligned pointer, offset, sizes, strides), as functions with as many
    /// parameters want them, or as pointers alone.
    fn records(&self, raw: &Raw, given: &[Given]) -> bool {
        let Some(count) = raw.count else { return false };
        let all: usize = given
            .iter()
            .map(|g| match g {
                Given::Memory(b, ..) => 3 + 2 * b.shape.len(),
                Given::Direct(..) => 1,
            })
            .sum();
        count == all && count != given.len()
    }

    /// What follows the allocated pointer in a buffer's record.
    fn record(
        &mut self,
        name: &str,
        pointer: tilewright_ir::Value,
        shape: &Shape,
        order: &[u32],
        operands: &mut Vec<Operand>,
    ) -> Eval<()> {
        operands.push(Operand { name: name.into(), value: pointer, encoding: None, is_output: false });
        let mut strides = vec![1i128; shape.len()];
        let mut stride = 1;
        for &d in order {
            strides[d as usize] = stride;
            stride *= i128::from(shape[d as usize]);
        }
        let sizes = shape.iter().map(|&n| i128::from(n));
        for number in std::iter::once(0).chain(sizes).chain(strides) {
            let value = self.scalar_constant(&HostValue::Int(number), &Scalar::Int64.into())?.value;
            operands.push(Operand { name: name.into(), value, encoding: None, is_output: false });
        }
        Ok(())
    }

    /// A pointer to a buffer's first element.
    fn first_element(&mut self, buffer: &Buffer) -> Eval<Tensor> {
        let zero = self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into())?;
        let indices = vec![zero; buffer.shape.len()];
        self.pointers(buffer, &indices, &Shape::new())
    }

    /// What the call gives: the outputs, in order. Tensors have their new values, memory is what it was.
    fn results_of(
        &mut self,
        values: &[Value],
        given: Vec<Given>,
        outputs: &[usize],
        results: Vec<tilewright_ir::Value>,
    ) -> Eval<Value> {
        let mut new = Vec::new();
        let mut results = results.into_iter();
        for (i, argument) in given.into_iter().enumerate() {
            if !outputs.contains(&i) {
                new.push(None);
                continue;
            }
            new.push(Some(match argument {
                Given::Direct(t, _) if t.dtype.is_pointer() => Value::Tensor(t),
                Given::Direct(t, _) => {
                    let value =
                        results.next().ok_or_else(|| self.error("internal: an output without a result"))?;
                    Value::Tensor(Tensor { value, ..t })
                }
                Given::Memory(buffer, Some(_), _) => Value::Tensor(self.read(&buffer)?),
                Given::Memory(..) => values[i].clone(),
            }));
        }
        let changed = |v: &Value| matches!(v, Value::Tensor(t) if !t.dtype.is_pointer());
        self.written =
            new.iter().enumerate().filter_map(|(i, v)| v.clone().filter(changed).map(|v| (i, v))).collect();
        let mut out: Vec<Value> = outputs.iter().filter_map(|&i| new[i].clone()).collect();
        Ok(match out.len() {
            0 => Value::NONE,
            1 => out.swap_remove(0),
            _ => Value::tuple(out),
        })
    }

    /// Gives the variables that a call as a statement wrote to their new values.
    pub(crate) fn assign_written(&mut self, call: &ExprCall) -> Eval<()> {
        for (i, value) in std::mem::take(&mut self.written) {
            let target = arguments_of(call).and_then(|list| list.get(i));
            match target {
                Some(target @ Expr::Name(_)) => self.assign(target, value)?,
                Some(other) => {
                    self.range = ruff_text_size::Ranged::range(other);
                    return Err(self
                        .error("the function writes this argument, which has no name: its new value would be lost")
                        .note("give a variable, or use what the call returns")
                        .into());
                }
                None => {
                    return Err(self
                        .error("the function writes tensors, whose new values would be lost")
                        .note("use what the call returns, or write the arguments as a list: args=[x, y]")
                        .into());
                }
            }
        }
        Ok(())
    }
}

/// The arguments that a call of `tle.raw.call` hands on, where they are written as a list.
pub(crate) fn arguments_of(call: &ExprCall) -> Option<&[Expr]> {
    let named = call.arguments.find_keyword("args").map(|k| &k.value);
    match named.or_else(|| call.arguments.args.get(1))? {
        Expr::List(list) => Some(&list.elts),
        Expr::Tuple(list) => Some(&list.elts),
        _ => None,
    }
}
