//! Vectors of scalars, other shapes of vectors, reductions, and accesses with an address of each element.

use tilewright_ir::dialect::tt;
use tilewright_ir::{Op, Value};

use super::value::{Known, Vector, array, mangled, mask};
use super::{Result, Writer, unsupported};

impl Writer<'_> {
    /// A vector that has a scalar in each element.
    pub(super) fn spread(&mut self, ty: &str, value: &str, length: u32) -> String {
        let one = self.assign(format!("insertelement <{length} x {ty}> poison, {ty} {value}, i32 0"));
        let vector = format!("<{length} x {ty}>");
        self.assign(format!(
            "shufflevector {vector} {one}, {vector} poison, <{length} x i32> zeroinitializer"
        ))
    }

    pub(super) fn splat(&mut self, op: Op) -> Result<()> {
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        let Known::Scalar { ty, value } = self.known(op, src)?.clone() else {
            return Err(unsupported(self.m, op, "this operand"));
        };
        let tensor = self.m.value_type(result);
        let name = self.spread(&ty, &value, super::value::lanes(self.m, tensor));
        self.known.insert(result, Known::Vector(Vector::plain(self.m, tensor, ty, name)));
        Ok(())
    }

    pub(super) fn range(&mut self, range: tt::MakeRange) -> Result<()> {
        let result = range.result(self.m);
        let tensor = self.m.value_type(result);
        let element = self.element(range.0, tensor)?;
        let values: Vec<String> = (range.start(self.m)..range.end(self.m)).map(|n| n.to_string()).collect();
        let text = array(&element, &values);
        self.known.insert(result, Known::Vector(Vector::plain(self.m, tensor, element, text)));
        Ok(())
    }

    pub(super) fn expand_dims(&mut self, op: Op) -> Result<()> {
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        let from = self.elements(op, src)?;
        let tensor = self.m.value_type(result);
        self.known.insert(result, Known::Vector(Vector::plain(self.m, tensor, from.element, from.name)));
        Ok(())
    }

    pub(super) fn broadcast(&mut self, op: Op) -> Result<()> {
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        let from = self.elements(op, src)?;
        let tensor = self.m.value_type(result);
        let shape = self.m.shape(tensor).unwrap_or(&[]).to_vec();
        let indices: Vec<u32> = (0..shape.iter().product())
            .map(|mut at: u32| {
                let (mut index, mut stride) = (0, 1);
                for (&n, &m) in shape.iter().zip(&from.shape).rev() {
                    index += at % n % m * stride;
                    (at, stride) = (at / n, stride * m);
                }
                index
            })
            .collect();
        let name = self.shuffle(&from, &indices);
        self.known.insert(result, Known::Vector(Vector::plain(self.m, tensor, from.element, name)));
        Ok(())
    }

    fn shuffle(&mut self, from: &Vector, indices: &[u32]) -> String {
        let ty = from.ty();
        self.assign(format!("shufflevector {ty} {}, {ty} poison, {}", from.name, mask(indices)))
    }

    pub(super) fn addptr(&mut self, op: Op) -> Result<()> {
        let [ptr, offset] = [0, 1].map(|i| self.m.operands(op)[i]);
        let result = self.m.result(op);
        let tensor = self.m.value_type(result);
        let pointee = self.m.pointee_type(self.m.element_type(tensor));
        let Some(pointee) = pointee.and_then(|ty| super::value::scalar_type(self.m, ty)) else {
            return Err(unsupported(self.m, op, "a pointer to this type"));
        };
        // (A bool is a byte in memory.)
        let pointee = if pointee == "i1" { "i8".to_string() } else { pointee };
        if self.m.is_tensor(tensor) {
            let (p, o) = (self.elements(op, ptr)?, self.elements(op, offset)?);
            let name = self.assign(format!("getelementptr {pointee}, {}, {}", p.typed(), o.typed()));
            self.known.insert(result, Known::Vector(Vector { name, ..p }));
        } else {
            let (p, o) = (self.typed(op, ptr)?, self.typed(op, offset)?);
            let name = self.assign(format!("getelementptr {pointee}, {p}, {o}"));
            self.scalar(result, "ptr addrspace(1)", name);
        }
        Ok(())
    }

    /// Combines elements by halves: each step takes the function's region once, with vectors in the place of elements.
    pub(super) fn reduce(&mut self, reduce: tt::Reduce) -> Result<()> {
        let axis = reduce.axis(self.m) as usize;
        let mut parts = Vec::new();
        for &src in reduce.srcs(self.m) {
            parts.push(self.elements(reduce.0, src)?);
        }
        let body = self.m.region_block(reduce.combine(self.m));
        let args = self.m.block_args(body).to_vec();
        while parts[0].shape[axis] > 1 {
            let extent = parts[0].shape[axis];
            if extent % 2 != 0 {
                let what = format!("a reduction of {extent} elements, not a power of two,");
                return Err(unsupported(self.m, reduce.0, what));
            }
            let mut sides = Vec::new();
            for half in 0..2 {
                for part in parts.clone() {
                    let inner: u32 = part.shape[axis + 1..].iter().product();
                    let mine = |at: &u32| at / inner % extent / (extent / 2) == half;
                    let indices: Vec<u32> = (0..part.count()).filter(mine).collect();
                    let name = self.shuffle(&part, &indices);
                    let mut shape = part.shape.clone();
                    shape[axis] /= 2;
                    let columns = shape.last().copied().unwrap_or(1);
                    sides.push(Vector { shape, columns, name, ..part });
                }
            }
            for (&arg, side) in args.iter().zip(sides) {
                self.known.insert(arg, Known::Vector(side));
            }
            self.block(body)?;
            let given = self.m.last_op(body).map_or(Vec::new(), |end| self.m.operands(end).to_vec());
            parts = given.into_iter().map(|v| self.elements(reduce.0, v)).collect::<Result<_>>()?;
        }
        for (&result, part) in reduce.results(self.m).iter().zip(parts) {
            let ty = self.m.value_type(result);
            let known = if self.m.is_tensor(ty) {
                Known::Vector(Vector::plain(self.m, ty, part.element, part.name))
            } else {
                let value = self.assign(format!("extractelement {}, i32 0", part.typed()));
                Known::Scalar { ty: part.element, value }
            };
            self.known.insert(result, known);
        }
        Ok(())
    }

    /// Addresses, mask and data size of an access; `None` in place of the mask where each element is accessed.
    fn access(&mut self, op: Op, ptr: Value, mask: Option<Value>, bits: u32) -> Result<[String; 3]> {
        let pointers = self.elements(op, ptr)?;
        let n = pointers.count();
        if !n.is_power_of_two() || n > 32 {
            return Err(unsupported(self.m, op, format!("an access with {n} addresses")));
        }
        let addresses = self.assign(format!("ptrtoint {} to <{n} x i64>", pointers.typed()));
        let mask = match mask {
            Some(mask) => self.elements(op, mask)?.typed(),
            None => format!("<{n} x i1> {}", array("i1", &vec!["true".to_string(); n as usize])),
        };
        // Elements of 8 and 16 bits go through words.
        let size = match bits {
            8 => 5,
            16 => 6,
            32 => 3,
            64 => 4,
            _ => return Err(unsupported(self.m, op, format!("an access to elements of {bits} bits"))),
        };
        Ok([format!("<{n} x i64> {addresses}"), mask, size.to_string()])
    }

    /// What a message with addresses is besides these: an operation, the caches' default, no scale and offset, one element each, in order.
    fn message_with_addresses(operation: u32, [addresses, mask, size]: &[String; 3]) -> Vec<String> {
        let operation = format!("i8 {operation}");
        let size = format!("i8 {size}");
        [mask, &operation, "i8 0", "i8 0", "i16 1", "i32 0", &size, "i8 1", "i8 1", "i8 0", addresses]
            .map(str::to_string)
            .to_vec()
    }

    pub(super) fn gather(&mut self, load: tt::Load) -> Result<()> {
        let result = load.result(self.m);
        let ty = self.m.value_type(result);
        if !self.m.is_tensor(ty) {
            return Err(unsupported(self.m, load.0, "a load of a scalar"));
        }
        let element = self.element(load.0, ty)?;
        let like = Vector::plain(self.m, ty, element, String::new());
        let parts = self.access(load.0, load.ptr(self.m), load.mask(self.m), like.bits)?;
        let n = like.count();
        let word = if like.bits == 64 { "i64" } else { "i32" };
        let other = match load.other(self.m) {
            Some(other) => {
                let other = self.elements(load.0, other)?;
                self.widened(&other, word)
            }
            None => "zeroinitializer".to_string(),
        };
        let mut args = Self::message_with_addresses(0, &parts);
        args.extend(["i32 0".to_string(), format!("<{n} x {word}> {other}")]);
        let name = format!("llvm.genx.lsc.load.merge.stateless.{}.v{n}i1.v{n}i64", mangled(n, word));
        let words = self.call(&name, &format!("<{n} x {word}>"), &args);
        let name = self.narrowed(&like, word, &words);
        self.known.insert(result, Known::Vector(Vector { name, ..like }));
        Ok(())
    }

    pub(super) fn scatter(&mut self, store: tt::Store) -> Result<()> {
        let value = store.value(self.m);
        if !self.m.is_tensor(self.m.value_type(value)) {
            return Err(unsupported(self.m, store.0, "a store of a scalar"));
        }
        let data = self.elements(store.0, value)?;
        let parts = self.access(store.0, store.ptr(self.m), store.mask(self.m), data.bits)?;
        let (n, word) = (data.count(), if data.bits == 64 { "i64" } else { "i32" });
        let words = self.widened(&data, word);
        let mut args = Self::message_with_addresses(4, &parts);
        args.extend([format!("<{n} x {word}> {words}"), "i32 0".to_string()]);
        let name = format!("llvm.genx.lsc.store.stateless.v{n}i1.v{n}i64.{}", mangled(n, word));
        self.run(&name, &args);
        Ok(())
    }

    /// Elements as words of their own.
    fn widened(&mut self, from: &Vector, word: &str) -> String {
        let n = from.count();
        let integer = format!("i{}", from.bits);
        let mut name = from.name.clone();
        if from.element != integer {
            let cast = if from.element.starts_with("ptr") { "ptrtoint" } else { "bitcast" };
            name = self.assign(format!("{cast} {} to <{n} x {integer}>", from.typed()));
        }
        if integer != word {
            name = self.assign(format!("zext <{n} x {integer}> {name} to <{n} x {word}>"));
        }
        name
    }

    /// And back.
    fn narrowed(&mut self, like: &Vector, word: &str, words: &str) -> String {
        let n = like.count();
        let integer = format!("i{}", like.bits);
        let mut name = words.to_string();
        if integer != word {
            name = self.assign(format!("trunc <{n} x {word}> {name} to <{n} x {integer}>"));
        }
        if like.element != integer {
            let cast = if like.element.starts_with("ptr") { "inttoptr" } else { "bitcast" };
            name = self.assign(format!("{cast} <{n} x {integer}> {name} to {}", like.ty()));
        }
        name
    }
}
