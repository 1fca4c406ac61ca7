//! Pipes: `tle.pipe`, its ends and what they do. They become rings (`ttg.ring_*`).
//!
//! Chunk `i` goes through slot `i % capacity` in the round `i / capacity`, whose parity is the phase. A cursor has both already.

use std::sync::Arc;

use ruff_python_ast::Operator;
use tilewright_ir::Type;
use tilewright_ir::dialect::ttg;

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::library::{Item, Library};
use crate::pipe::{Pipe, PipePart, Role};
use crate::value::{Buffer, Tensor, TupleValue, Value};

/// The module of the library in which pipes stand.
pub(crate) const MODULE: &str = "tle._pipe";

/// Names that mean something else where fields and readers are.
const RESERVED: [&str; 2] = ["fields", "readers"];

/// An end of a pipe, and the partition that uses it: 0 for the kernel's own warps, which run the default one too.
pub(crate) struct UsedEnd {
    pipe: Arc<Pipe>,
    /// The reader's number; none for the writer.
    reader: Option<usize>,
    partition: usize,
}

impl Evaluator<'_> {
    pub(super) fn pipe(&mut self, args: &Args) -> Eval<Value> {
        let capacity = self.int_arg(args, "capacity")?;
        let Some(capacity) = u32::try_from(capacity).ok().filter(|&n| n > 0 && n <= i32::MAX as u32) else {
            return Err(self.error(format!("`capacity` of tle.pipe must be positive, not {capacity}")));
        };
        let scope = self.str_arg(args, "scope")?;
        if scope != "cta" {
            return Err(self.error(format!("`scope` of tle.pipe is \"{scope}\"; possible is \"cta\"")));
        }
        let name = match args.get("name") {
            Value::Const(HostValue::None) => None,
            Value::Const(HostValue::Str(name)) => Some(name.clone()),
            other => return Err(self.bad_argument(args, "name", other, "a constant string")),
        };
        let one_shot = match args.get("one_shot") {
            Value::Const(HostValue::Bool(b)) => *b,
            other => return Err(self.bad_argument(args, "one_shot", other, "a constant True or False")),
        };
        let readers = match args.optional("readers") {
            None => None,
            Some(given) => Some(self.names(args, "readers", &given.clone())?),
        };
        for reader in readers.iter().flatten() {
            self.check_pipe_name("reader", reader)?;
        }
        if args.named.is_empty() {
            return Err(self
                .error("tle.pipe needs at least one field")
                .note(format!("give a buffer of {capacity} slots by name: tle.pipe(capacity={capacity}, x=tle.gpu.alloc([{capacity}, ...], ...))"))
                .into());
        }
        let mut fields = Vec::new();
        for (name, value) in &args.named {
            self.check_pipe_name("field", name)?;
            fields.push((Arc::from(name.as_str()), self.pipe_field(name, value, capacity)?));
        }
        let handles: Vec<_> = fields.iter().map(|(_, buffer)| buffer.handle.value).collect();
        let slots = capacity as i32;
        let names = readers.as_ref().map(|names| names.iter().map(|n| n.to_string()).collect());
        let title = name.as_ref().map(|n| n.to_string());
        let ring =
            ttg::RingCreate::build(&mut builder!(self), &handles, slots, names, title, one_shot, Type::RING)
                .ring(&self.module);
        let pipe = Arc::new(Pipe { capacity, name, readers, one_shot });
        let handle = Tensor::scalar(ring, Scalar::Void);
        Ok(Value::Pipe(Arc::new(PipePart { pipe, role: Role::Whole, handle, fields })))
    }

    /// A field of a pipe, which must be a buffer of as many slots.
    fn pipe_field(&mut self, name: &str, value: &Value, capacity: u32) -> Eval<Buffer> {
        let Value::Buffer(buffer) = value else {
            return Err(self
                .error(format!("the field `{name}` of a pipe must be a buffered_tensor, not {value}"))
                .note("tle.gpu.alloc gives one")
                .into());
        };
        if !buffer.begin.is_empty() {
            return Err(
                self.not_supported_yet("a field of a pipe that is a tile of a buffer, chosen at run time")
            );
        }
        if buffer.shape.len() < 2 || buffer.shape[0] != capacity {
            return Err(self
                .error(format!(
                    "the field `{name}` of a pipe of capacity {capacity} must be a buffer of shape [{capacity}, ...], not {:?}",
                    buffer.shape.as_slice()
                ))
                .note("the leading dimension counts the slots, what remains is what one holds")
                .into());
        }
        Ok((**buffer).clone())
    }

    /// An argument that must be a tuple or list of constant strings, each once.
    fn names(&mut self, args: &Args, what: &str, given: &Value) -> Eval<Vec<Arc<str>>> {
        let Value::Tuple(items) = given else {
            return Err(self.bad_argument(args, what, given, "a tuple of constant strings"));
        };
        let mut names: Vec<Arc<str>> = Vec::new();
        for item in &items.items {
            let Value::Const(HostValue::Str(name)) = item else {
                return Err(self.bad_argument(args, what, given, "a tuple of constant strings"));
            };
            if names.contains(name) {
                return Err(self.error(format!("`{what}` of {} has \"{name}\" twice", args.builtin.shown())));
            }
            names.push(name.clone());
        }
        if names.is_empty() {
            return Err(self.error(format!(
                "`{what}` of {} is empty: leave it away, or give a name",
                args.builtin.shown()
            )));
        }
        Ok(names)
    }

    /// What fields and readers may be called.
    fn check_pipe_name(&self, what: &str, name: &str) -> Eval<()> {
        let letter = |c: char| c == '_' || c.is_alphabetic();
        let identifier = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_numeric());
        if !identifier {
            return Err(self.error(format!("the {what} \"{name}\" of a pipe is not an identifier")));
        }
        if name.starts_with('_') || RESERVED.contains(&name) {
            let why = if name.starts_with('_') { "begins with `_`" } else { "is a reserved name" };
            return Err(self
                .error(format!("the {what} \"{name}\" of a pipe {why}"))
                .note("choose another name")
                .into());
        }
        Ok(())
    }

    /// The pipe or the end of one whose method is called.
    fn pipe_part(&self, args: &Args) -> Eval<Arc<PipePart>> {
        match args.get("self") {
            Value::Pipe(part) if args.builtin.path.contains(part.class()) => Ok(part.clone()),
            other => Err(self.bad_argument(args, "self", other, "the end of a pipe that the method is of")),
        }
    }

    pub(super) fn pipe_writer(&mut self, args: &Args) -> Eval<Value> {
        let whole = self.pipe_part(args)?;
        Ok(Value::Pipe(Arc::new(PipePart { role: Role::Writer, ..(*whole).clone() })))
    }

    pub(super) fn pipe_reader(&mut self, args: &Args) -> Eval<Value> {
        let whole = self.pipe_part(args)?;
        let number = match (&whole.pipe.readers, args.get("name")) {
            (None, Value::Const(HostValue::None)) => 0,
            (None, Value::Const(HostValue::Str(name))) => {
                return Err(self
                    .error(format!("the pipe has one reader without a name, not \"{name}\""))
                    .note(format!("declare it: tle.pipe(..., readers=(\"{name}\",))"))
                    .into());
            }
            (Some(names), Value::Const(HostValue::None)) => {
                return Err(self.error(format!(
                    "the pipe has named readers: `name` must be one of {}",
                    listed(names.iter())
                )));
            }
            (Some(names), Value::Const(HostValue::Str(name))) => match names.iter().position(|n| n == name) {
                Some(number) => number,
                None => {
                    let error = self
                        .error(format!("the pipe has no reader \"{name}\"; it has {}", listed(names.iter())));
                    return Err(match super::super::expr::closest(name, names.iter().map(|n| &**n)) {
                        Some(near) => error.note(format!("did you mean \"{near}\"?")).into(),
                        None => error,
                    });
                }
            },
            (_, other) => return Err(self.bad_argument(args, "name", other, "a constant string")),
        };
        let visible = match args.optional("fields") {
            None => (0..whole.fields.len()).collect(),
            Some(given) => {
                let mut visible = Vec::new();
                for name in self.names(args, "fields", &given.clone())? {
                    match whole.fields.iter().position(|(n, _)| *n == name) {
                        Some(i) => visible.push(i),
                        None => {
                            let known = listed(whole.fields.iter().map(|(n, _)| n));
                            return Err(
                                self.error(format!("the pipe has no field \"{name}\"; it has {known}"))
                            );
                        }
                    }
                }
                visible
            }
        };
        Ok(Value::Pipe(Arc::new(PipePart { role: Role::Reader(number, visible), ..(*whole).clone() })))
    }

    pub(super) fn pipe_cursor(&mut self, args: &Args) -> Eval<Value> {
        let end = self.pipe_part(args)?;
        let start = args.get("start_iter").clone();
        self.check_chunk(&start)?;
        match Library::get().resolve(&format!("{MODULE}.pipe_cursor")) {
            Some(Item::Aggregate(class)) => {
                let positional = vec![start, Value::int(end.pipe.capacity)];
                self.instantiate(&class, CallArgs { positional, keywords: Vec::new() })
            }
            _ => Err(self.error("the library has no pipe_cursor")),
        }
    }

    /// The number of a chunk must be an integer.
    fn check_chunk(&self, iter: &Value) -> Eval<()> {
        match iter {
            Value::Const(HostValue::Int(i)) if *i >= 0 => Ok(()),
            Value::Const(HostValue::Int(i)) => {
                Err(self.error(format!("chunks of a pipe are numbered from 0, and this is {i}")))
            }
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                Ok(())
            }
            other => Err(self
                .error(format!("the number of a chunk of a pipe must be an integer, not {other}"))
                .note("give a scalar integer, also at run time, or a cursor: w.cursor(start)")
                .into()),
        }
    }

    /// Slot and phase of a chunk.
    fn position(
        &mut self,
        end: &PipePart,
        iter: &Value,
    ) -> Eval<(tilewright_ir::Value, tilewright_ir::Value)> {
        let capacity = end.pipe.capacity;
        if let Value::Aggregate(cursor) = iter
            && &*cursor.class.name == "pipe_cursor"
        {
            let field = |name| cursor.class.field(name).and_then(|i| cursor.fields[i].clone());
            if field("capacity").is_some_and(|of| !of.identical(&Value::int(capacity))) {
                return Err(
                    self.error(format!("the cursor is of a pipe of another capacity than {capacity}"))
                );
            }
            if let (Some(Value::Tensor(stage)), Some(Value::Tensor(phase))) = (field("stage"), field("phase"))
            {
                return Ok((stage.value, phase.value));
            }
        }
        self.check_chunk(iter)?;
        let int = |e: &mut Self, v: Value| -> Eval<tilewright_ir::Value> {
            let t = e.tensor_of(&v)?;
            e.cast(&t, &Scalar::Int32.into()).map(|t| t.value)
        };
        if let Value::Const(HostValue::Int(i)) = iter {
            let n = i128::from(capacity);
            return Ok((int(self, Value::int(i % n))?, int(self, Value::int(i / n % 2))?));
        }
        // Without a sign: remainders by powers of two are bits.
        let chunk = self.tensor_of(iter)?;
        let wide = chunk.number().is_some_and(|s| s.bits() > 32);
        let chunk = self.cast(&chunk, &if wide { Scalar::UInt64 } else { Scalar::UInt32 }.into())?;
        let chunk = Value::Tensor(chunk);
        let by = |e: &mut Self, op, v: Value, n: i128| e.binary(op, v, Value::int(n));
        let (slot, round) = if capacity == 1 {
            (Value::int(0), chunk)
        } else {
            let n = i128::from(capacity);
            let slot = by(self, Operator::Mod, chunk.clone(), n)?;
            (slot, by(self, Operator::FloorDiv, chunk, n)?)
        };
        let phase = by(self, Operator::BitAnd, round, 1)?;
        Ok((int(self, slot)?, int(self, phase)?))
    }

    /// The end whose method is called, its ring, and slot and phase of the chunk.
    fn end_at(
        &mut self,
        args: &Args,
    ) -> Eval<(Arc<PipePart>, tilewright_ir::Value, tilewright_ir::Value, tilewright_ir::Value)> {
        let end = self.pipe_part(args)?;
        self.belongs_here(&end)?;
        let (slot, phase) = self.position(&end, args.get("iter"))?;
        let ring = end.handle.value;
        Ok((end, ring, slot, phase))
    }

    /// Checks that an end is used by one group of warps.
    fn belongs_here(&mut self, end: &PipePart) -> Eval<()> {
        let reader = if let Role::Reader(number, _) = end.role { Some(number) } else { None };
        let partition = self.partition.map_or(0, |p| p.number);
        let is_it = |used: &&UsedEnd| Arc::ptr_eq(&used.pipe, &end.pipe) && used.reader == reader;
        match self.pipe_ends.iter().find(is_it) {
            None => self.pipe_ends.push(UsedEnd { pipe: end.pipe.clone(), reader, partition }),
            Some(used) if used.partition == partition => {}
            Some(_) => {
                let named = reader.and_then(|n| end.pipe.readers.as_ref()?.get(n));
                let (who, what) = match (reader, named) {
                    (None, _) => (
                        "the writer".to_string(),
                        "a pipe has one writer: where several partitions write, make a pipe for each",
                    ),
                    (_, Some(name)) => (
                        format!("the reader \"{name}\""),
                        "each partition that reads needs a reader of its own: tle.pipe(..., readers=(...))",
                    ),
                    (_, None) => (
                        "the reader".to_string(),
                        "each partition that reads needs a reader of its own: tle.pipe(..., readers=(...))",
                    ),
                };
                let pipe =
                    end.pipe.name.as_ref().map_or("a pipe".to_string(), |name| format!("the pipe `{name}`"));
                return Err(self
                    .error(format!("{who} of {pipe} is used in two partitions of tle.gpu.warp_specialize"))
                    .note(what)
                    .into());
            }
        }
        Ok(())
    }

    /// A slot, of which these fields are visible.
    fn pipe_slot(&self, end: &PipePart, visible: &[usize], slot: tilewright_ir::Value) -> Value {
        let fields = visible.iter().map(|&i| end.fields[i].clone()).collect();
        let handle = Tensor::scalar(slot, Scalar::Int32);
        Value::Pipe(Arc::new(PipePart { pipe: end.pipe.clone(), role: Role::Slot, handle, fields }))
    }

    /// A field of a pipe, or what it has in a slot.
    fn pipe_field_of(&mut self, part: &PipePart, buffer: &Buffer) -> Eval<Value> {
        let buffer = match part.role {
            Role::Slot => self.numbered(buffer, &part.handle)?,
            _ => buffer.clone(),
        };
        Ok(Value::Buffer(Arc::new(buffer)))
    }

    pub(super) fn pipe_acquire(&mut self, args: &Args) -> Eval<Value> {
        let (end, ring, slot, phase) = self.end_at(args)?;
        ttg::RingAcquire::build(&mut builder!(self), ring, slot, Some(phase), None);
        let all: Vec<usize> = (0..end.fields.len()).collect();
        Ok(self.pipe_slot(&end, &all, slot))
    }

    pub(super) fn pipe_commit(&mut self, args: &Args) -> Eval<()> {
        let (_, ring, slot, _) = self.end_at(args)?;
        ttg::RingCommit::build(&mut builder!(self), ring, slot);
        Ok(())
    }

    pub(super) fn pipe_close(&mut self, args: &Args) -> Eval<()> {
        let (end, ring, slot, phase) = self.end_at(args)?;
        if end.pipe.one_shot {
            return Err(self
                .error("a one_shot pipe cannot be closed")
                .note("its readers know how many chunks there are; leave one_shot=True away to close it")
                .into());
        }
        ttg::RingClose::build(&mut builder!(self), ring, slot, phase);
        Ok(())
    }

    pub(super) fn pipe_wait(&mut self, args: &Args) -> Eval<Value> {
        let (end, ring, slot, phase) = self.end_at(args)?;
        let Role::Reader(number, visible) = end.role.clone() else {
            return Err(self.error("only a reader waits for a pipe"));
        };
        let reader = end.pipe.readers.as_ref().map(|_| number as i32);
        ttg::RingWait::build(&mut builder!(self), ring, slot, phase, None, reader, None);
        let closed = ttg::RingIsClosed::build(&mut builder!(self), ring, slot, Type::I1).closed(&self.module);
        let closed = Value::Tensor(Tensor::scalar(closed, Scalar::Int1));
        let slot = self.pipe_slot(&end, &visible, slot);
        let class = ("pipe_wait_result".into(), ["slot", "is_closed"].map(Arc::from).into());
        Ok(Value::Tuple(Arc::new(TupleValue { class: Some(class), items: vec![slot, closed] })))
    }

    pub(super) fn pipe_release(&mut self, args: &Args) -> Eval<()> {
        let (end, ring, slot, _) = self.end_at(args)?;
        let Role::Reader(number, _) = end.role else {
            return Err(self.error("only a reader releases slots of a pipe"));
        };
        let reader = end.pipe.readers.as_ref().map(|_| number as i32);
        ttg::RingRelease::build(&mut builder!(self), ring, slot, None, reader);
        Ok(())
    }

    /// What a pipe, an end of it or a slot has under a name.
    pub(crate) fn pipe_attribute(&mut self, part: &Arc<PipePart>, attr: &str) -> Eval<Option<Value>> {
        let string = |name: &Arc<str>| Value::Const(HostValue::Str(name.clone()));
        let pipe = &part.pipe;
        let field = |i: usize| part.fields[i].0.clone();
        Ok(match (attr, &part.role) {
            ("fields", Role::Reader(_, visible)) => {
                Some(Value::tuple(visible.iter().map(|&i| string(&field(i))).collect()))
            }
            ("fields", Role::Whole | Role::Slot) => {
                let mut entries = Vec::new();
                for (name, buffer) in &part.fields {
                    entries.push((string(name), self.pipe_field_of(part, buffer)?));
                }
                Some(Value::Dict(entries.into_iter().collect()))
            }
            ("capacity", Role::Whole) => Some(Value::int(pipe.capacity)),
            ("scope", Role::Whole) => Some(string(&"cta".into())),
            ("one_shot", Role::Whole) => Some(Value::bool(pipe.one_shot)),
            ("name", Role::Whole) => Some(pipe.name.as_ref().map_or(Value::NONE, string)),
            ("name", Role::Reader(number, _)) => {
                Some(pipe.readers.as_ref().map_or(Value::NONE, |names| string(&names[*number])))
            }
            ("readers", Role::Whole) => Some(match &pipe.readers {
                Some(names) => Value::tuple(names.iter().map(string).collect()),
                None => Value::NONE,
            }),
            ("pipe", Role::Writer | Role::Reader(..)) => {
                Some(Value::Pipe(Arc::new(PipePart { role: Role::Whole, ..(**part).clone() })))
            }
            (_, Role::Whole | Role::Slot) => match part.field(attr) {
                Some(buffer) => Some(self.pipe_field_of(part, buffer)?),
                None => None,
            },
            _ => None,
        })
    }
}

/// Names as a message has them.
fn listed<'a>(names: impl Iterator<Item = &'a Arc<str>>) -> String {
    let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}
