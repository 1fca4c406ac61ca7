//! What is done to blocks: messages that move them, and products of the matrix engines.

use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Op, Type, TypeKind, Value};

use super::value::{Known, Surface, Vector, mangled, mask};
use super::{LANES, Result, Style, Writer, unsupported};

/// The order of a message's elements: not transposed.
const IN_ORDER: &str = "i8 1";
/// Steps of 32 bits along K that DPAS makes.
const DEPTH: u32 = 8;

/// How a message calls elements of so many bits.
fn data_size(bits: u32) -> u32 {
    bits.trailing_zeros() - 2
}

/// How a block is wanted by what takes it: columns of the part, and whether in VNNI.
fn wanted(m: &Module, block: Value) -> Option<(u32, bool)> {
    let columns = |v: Value| m.shape(m.value_type(v)).and_then(|s| s.last().copied()).unwrap_or(1);
    // Words have one element then.
    let packs = m.bits(m.value_type(block)) < 32;
    let mut found = None;
    for used in m.uses(block) {
        let one = if let Some(extract) = tt::Extract::cast(m, used.op) {
            let part = extract.result(m);
            let second = |u: &tilewright_ir::Use| tt::Dot::cast(m, u.op).is_some() && u.index == 1;
            let (all, any) = (m.uses(part).iter().all(second), m.uses(part).iter().any(second));
            if any && !all {
                return None;
            }
            (columns(part), any && packs)
        } else {
            let second = tt::Dot::cast(m, used.op).is_some() && used.index == 1;
            (columns(block), second && packs)
        };
        if found.is_some_and(|f| f != one) {
            return None;
        }
        found = Some(one);
    }
    found.or(Some((columns(block), false)))
}

/// How DPAS calls elements of a type; `None` of those it does not take.
fn precision(ty: Type, style: Style) -> Option<u32> {
    if style == Style::Simt {
        // (GenISA has numbers of its own.)
        return match ty {
            Type::BF16 => Some(9),
            Type::F16 => Some(10),
            _ => None,
        };
    }
    match ty {
        Type::I8 => Some(8),
        Type::BF16 => Some(9),
        Type::F16 => Some(10),
        // Of which it takes what tf32 has.
        Type::F32 => Some(12),
        _ => None,
    }
}

impl Writer<'_> {
    pub(super) fn descriptor(&mut self, make: tt::MakeTensorDescriptor) -> Result<()> {
        let (shape, strides) = (make.shape(self.m).to_vec(), make.strides(self.m).to_vec());
        let (&[height, width], &[pitch, step]) = (&shape[..], &strides[..]) else {
            return Err(unsupported(self.m, make.0, "a descriptor of other than two dimensions"));
        };
        if self.m.constant_int(step) != Some(1) {
            return Err(unsupported(self.m, make.0, "a descriptor whose rows are not contiguous"));
        }
        if make.padding(self.m) == Some(2) {
            return Err(unsupported(self.m, make.0, "padding with NaN"));
        }
        let base = self.typed(make.0, make.base(self.m))?;
        let base = self.assign(format!("ptrtoint {base} to i64"));
        let pointee = self.m.pointee_type(self.m.value_type(make.base(self.m)));
        let bytes = pointee.map_or(1, |ty| self.m.bits(ty) / 8);
        let mut operands = vec![format!("i64 {base}")];
        for (extent, bytes) in [(width, bytes), (height, 1), (pitch, bytes)] {
            let mut number = self.plain_scalar(make.0, extent)?;
            if self.m.value_type(extent) == Type::I64 {
                number = self.assign(format!("trunc i64 {number} to i32"));
            }
            if bytes != 1 {
                number = self.assign(format!("mul i32 {number}, {bytes}"));
            }
            operands.push(format!("i32 {}", self.assign(format!("sub i32 {number}, 1"))));
        }
        self.known.insert(make.result(self.m), Known::Surface(Surface { operands }));
        Ok(())
    }

    /// A message's operands before its data: a block as wide as one of the vector's, at most as many beside each other as fit.
    fn message(&mut self, op: Op, desc: Value, at: &[Value], block: &Vector) -> Result<Vec<String>> {
        let Known::Surface(surface) = self.known(op, desc)?.clone() else {
            return Err(unsupported(self.m, op, "a descriptor that is not made here"));
        };
        let (&[rows, columns], &[y, x]) = (&block.shape[..], at) else {
            return Err(unsupported(self.m, op, "a block of other than two dimensions"));
        };
        if !(block.columns * self.style.lanes() * rows * block.bits / 8).is_multiple_of(64) {
            return Err(unsupported(
                self.m,
                op,
                format!("a block of {rows}x{columns}, which does not fill registers,"),
            ));
        }
        let across = columns / block.columns;
        let at = [self.typed(op, x)?, self.typed(op, y)?];
        if self.style == Style::Simt {
            // Extents less one, as the surface has them; bits, width, height and number of blocks, whether turned, whether VNNI, caches.
            let mut args = surface.operands;
            args.extend(at);
            args.extend([block.bits, block.columns * LANES, rows, across].map(|n| format!("i32 {n}")));
            args.extend(["i1 false".to_string(), format!("i1 {}", block.vnni), "i32 0".into()]);
            return Ok(args);
        }
        let mut args = vec!["i1 true".to_string(), "i8 0".into(), "i8 0".into()];
        args.push(format!("i8 {}", data_size(block.bits)));
        args.push(IN_ORDER.to_string());
        args.push(format!("i8 {across}"));
        args.extend([format!("i16 {}", block.columns), format!("i16 {rows}")]);
        args.push(format!("i8 {}", u32::from(block.vnni)));
        args.extend(surface.operands);
        args.extend(at);
        Ok(args)
    }

    pub(super) fn block_load(&mut self, load: tt::DescriptorLoad) -> Result<()> {
        let result = load.result(self.m);
        let Some((columns, vnni)) = wanted(self.m, result) else {
            return Err(unsupported(self.m, load.0, "a block that is wanted in several arrangements"));
        };
        let ty = self.m.value_type(result);
        // A lane has elements; of those beside each other in a word all, or a warp.
        let words = vnni || self.style == Style::Simd;
        let element = if words { "i32".to_string() } else { format!("i{}", self.m.bits(ty)) };
        let plain = Vector::plain(self.m, ty, element.clone(), String::new());
        let mut block = Vector { words, columns, vnni, ..plain };
        if block.bits > 32 {
            return Err(unsupported(self.m, load.0, "a block of elements of more than 32 bits"));
        }
        let (desc, at) = (load.desc(self.m), load.indices(self.m).to_vec());
        let args = self.message(load.0, desc, &at, &block)?;
        let of_block = mangled(block.length(), &element);
        let name = match self.style {
            Style::Simd => format!("llvm.genx.lsc.load2d.stateless.{of_block}.i1.i64"),
            Style::Simt => format!("llvm.genx.GenISA.LSC2DBlockRead.{of_block}"),
        };
        block.name = self.call(&name, &block.ty(), &args);
        self.known.insert(result, Known::Vector(block));
        Ok(())
    }

    pub(super) fn block_prefetch(&mut self, prefetch: tt::DescriptorPrefetch) -> Result<()> {
        let (desc, at) = (prefetch.desc(self.m), prefetch.indices(self.m).to_vec());
        let TypeKind::TensorDesc { block } = *self.m.type_kind(self.m.value_type(desc)) else {
            return Err(unsupported(self.m, prefetch.0, "of something else than a descriptor"));
        };
        let mut plain = Vector::plain(self.m, block, "i32".into(), String::new());
        if let (Style::Simt, Some(columns)) = (self.style, plain.shape.last_mut()) {
            *columns /= LANES;
            plain.columns = *columns;
        }
        // No message is so small, and nothing depends on it.
        if (plain.count() * self.style.lanes() * plain.bits / 8) < 64 {
            return Ok(());
        }
        let args = self.message(prefetch.0, desc, &at, &plain)?;
        let name = match self.style {
            Style::Simd => "llvm.genx.lsc.prefetch2d.stateless.i1.i64",
            Style::Simt => "llvm.genx.GenISA.LSC2DBlockPrefetch.isVoid",
        };
        self.run(name, &args);
        Ok(())
    }

    pub(super) fn block_store(&mut self, store: tt::DescriptorStore) -> Result<()> {
        let (desc, at) = (store.desc(self.m), store.indices(self.m).to_vec());
        let src = store.src(self.m);
        if self.m.bits(self.m.value_type(src)) > 32 {
            return Err(unsupported(self.m, store.0, "a block of elements of more than 32 bits"));
        }
        let block = match self.style {
            Style::Simd => self.words(store.0, src)?,
            Style::Simt => self.integers(store.0, src)?,
        };
        if !block.is_row_major() {
            return Err(unsupported(
                self.m,
                store.0,
                "a block that is arranged for a dot, as another operand,",
            ));
        }
        let mut args = self.message(store.0, desc, &at, &block)?;
        args.push(block.typed());
        let of_block = mangled(block.length(), &block.element);
        let name = match self.style {
            Style::Simd => format!("llvm.genx.lsc.store2d.stateless.i1.i64.{of_block}"),
            Style::Simt => format!("llvm.genx.GenISA.LSC2DBlockWrite.{of_block}"),
        };
        self.run(&name, &args);
        Ok(())
    }

    pub(super) fn extract(&mut self, extract: tt::Extract) -> Result<()> {
        let (src, result) = (extract.src(self.m), extract.result(self.m));
        let Known::Vector(from) = self.known(extract.0, src)?.clone() else {
            return Err(unsupported(self.m, extract.0, "this operand"));
        };
        let shape = self.m.shape(self.m.value_type(result)).unwrap_or(&[]).to_vec();
        let (&[rows, columns], &[_, width]) = (&shape[..], &from.shape[..]) else {
            return Err(unsupported(self.m, extract.0, "a part of other than two dimensions"));
        };
        // Verified: it is one of the parts.
        let (number, across) = (extract.index(self.m) as u32, width / columns);
        let corner = [number / across * rows, number % across * columns];
        let Some(indices) = from.part(corner, [rows, columns]) else {
            return Err(unsupported(self.m, extract.0, "a part that ends within words"));
        };
        let ty = from.ty();
        let mask = mask(&indices);
        let name = self.assign(format!("shufflevector {ty} {}, {ty} poison, {mask}", from.name));
        self.known.insert(result, Known::Vector(Vector { shape, columns, name, ..from }));
        Ok(())
    }

    pub(super) fn dot(&mut self, dot: tt::Dot) -> Result<()> {
        let [a, b, c] = [dot.a(self.m), dot.b(self.m), dot.c(self.m)];
        let element = |v: Value| self.m.element_type(self.m.value_type(v));
        let of = |v| precision(element(v), self.style);
        let (Some(of_a), Some(of_b)) = (of(a), of(b)) else {
            return Err(unsupported(self.m, dot.0, "a dot of these types"));
        };
        let y = self.words(dot.0, b)?;
        let x = match self.style {
            Style::Simd => self.words(dot.0, a)?,
            Style::Simt => self.integers(dot.0, a)?,
        };
        let acc = self.elements(dot.0, c)?;
        let lanes = self.style.lanes();
        if !x.is_row_major() || y.vnni != (y.bits < 32) || y.columns * lanes != LANES {
            let what = "a dot whose second operand is not what a load of blocks brings";
            return Err(unsupported(self.m, dot.0, what));
        }
        let (rows, words) = (x.shape[0], x.shape[1] * lanes * x.bits / 32);
        if words != DEPTH || y.length() * lanes != DEPTH * LANES {
            return Err(unsupported(self.m, dot.0, format!("a dot with {words} words along K")));
        }
        let of = |v: &Vector| mangled(v.length(), &v.element);
        let (name, args): (String, Vec<String>) = match self.style {
            Style::Simd => {
                let numbers = [of_b, of_a, DEPTH, rows, 1, 1].map(|n| format!("i32 {n}"));
                let args = [acc.typed(), y.typed(), x.typed()].into_iter().chain(numbers).collect();
                (format!("llvm.genx.dpas2.{}.{}.{}", of(&acc), of(&y), of(&x)), args)
            }
            Style::Simt => {
                let numbers = [of_a, of_b, DEPTH, rows].map(|n| format!("i32 {n}"));
                let args = [acc.typed(), x.typed(), y.typed()].into_iter().chain(numbers);
                let args = args.chain(["i1 false".to_string()]).collect();
                (format!("llvm.genx.GenISA.sub.group.dpas.{}.{}.{}", of(&acc), of(&x), of(&y)), args)
            }
        };
        let name = self.call(&name, &acc.ty(), &args);
        self.known.insert(dot.result(self.m), Known::Vector(Vector { name, ..acc }));
        Ok(())
    }
}
