//! A module of the `tt` level as Python looks at it, under the names of Triton's bindings (`triton._C.libtriton.ir`): PyTorch
//! walks a kernel so to find which of its arguments are written to. Nothing can be changed here.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use tilewright_ir::{AttrKind, Block, Module, Op, Region, Value};

use crate::errors::TilewrightError;

/// A module.
#[pyclass(frozen, name = "module", module = "tilewright._C.ir")]
pub struct IrModule(Arc<Module>);

/// An operation of a module.
#[pyclass(frozen, name = "operation", module = "tilewright._C.ir")]
pub struct IrOperation(Arc<Module>, Op);

/// A region of an operation.
#[pyclass(frozen, name = "region", module = "tilewright._C.ir")]
pub struct IrRegion(Arc<Module>, Region);

/// A block of a region.
#[pyclass(frozen, name = "block", module = "tilewright._C.ir")]
pub struct IrBlock(Arc<Module>, Block);

/// A result of an operation or an argument of a block.
#[pyclass(frozen, name = "value", module = "tilewright._C.ir")]
pub struct IrValue(Arc<Module>, Value);

/// The item of a list that Python asked for.
fn item<T: Copy>(items: &[T], at: usize, what: &str) -> PyResult<T> {
    items.get(at).copied().ok_or_else(|| {
        PyIndexError::new_err(format!("there is no {what} {at}: the operation or block has {}", items.len()))
    })
}

#[pymethods]
impl IrModule {
    /// The module that a text is; raises `TilewrightError` for what is none.
    #[new]
    #[pyo3(signature = (text, file = "module.mlir"))]
    fn new(text: &str, file: &str) -> PyResult<Self> {
        let module = tilewright_ir::parse(text, file)
            .map_err(|diagnostic| TilewrightError::new_err(diagnostic.to_string()))?;
        Ok(IrModule(Arc::new(module)))
    }

    fn __str__(&self) -> String {
        tilewright_ir::print(&self.0)
    }

    /// Whether every operation is as its declaration says.
    fn verify(&self) -> bool {
        tilewright_ir::verify(&self.0).is_ok()
    }

    /// Calls a function with each operation, those inside of another one before it.
    fn walk(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut ops = Vec::new();
        inside_first(&self.0, self.0.root(), &mut ops);
        ops.into_iter()
            .try_for_each(|op| function.call1((Py::new(py, IrOperation(self.0.clone(), op))?,)).map(|_| ()))
    }

    /// Whether it has a function of this name.
    fn has_function(&self, name: &str) -> bool {
        self.0.function(name).is_some()
    }

    /// An attribute of the module that is an integer.
    fn get_int_attr(&self, name: &str) -> Option<i64> {
        self.0.int_attr(self.0.root(), name)
    }
}

fn inside_first(module: &Module, op: Op, ops: &mut Vec<Op>) {
    for &region in module.regions(op) {
        for &block in module.region_blocks(region) {
            module.block_ops(block).for_each(|inner| inside_first(module, inner, ops));
        }
    }
    ops.push(op);
}

impl IrOperation {
    fn attr(&self, name: &str) -> Option<&AttrKind> {
        Some(self.0.attr_kind(self.0.op_attr(self.1, name)?))
    }
}

#[pymethods]
impl IrOperation {
    /// As in `tt.load`.
    fn get_name(&self) -> &str {
        self.0.op_name(self.1)
    }

    fn get_num_operands(&self) -> usize {
        self.0.operands(self.1).len()
    }

    fn get_operand(&self, at: usize) -> PyResult<IrValue> {
        item(self.0.operands(self.1), at, "operand").map(|value| IrValue(self.0.clone(), value))
    }

    fn get_num_results(&self) -> usize {
        self.0.results(self.1).len()
    }

    fn get_result(&self, at: usize) -> PyResult<IrValue> {
        item(self.0.results(self.1), at, "result").map(|value| IrValue(self.0.clone(), value))
    }

    fn get_num_regions(&self) -> usize {
        self.0.regions(self.1).len()
    }

    fn get_region(&self, at: usize) -> PyResult<IrRegion> {
        item(self.0.regions(self.1), at, "region").map(|region| IrRegion(self.0.clone(), region))
    }

    /// The block that it stands in; a module's own operation stands in none.
    fn get_block(&self) -> Option<IrBlock> {
        self.0.parent_block(self.1).map(|block| IrBlock(self.0.clone(), block))
    }

    /// An attribute that is a text.
    fn get_str_attr(&self, name: &str) -> Option<&str> {
        match self.attr(name)? {
            AttrKind::Str(text) | AttrKind::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// An attribute that names a function.
    fn get_flat_symbol_ref_attr(&self, name: &str) -> Option<&str> {
        match self.attr(name)? {
            AttrKind::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// An attribute that is true or false.
    fn get_bool_attr(&self, name: &str) -> Option<bool> {
        match self.attr(name)? {
            AttrKind::Bool(value) => Some(*value),
            AttrKind::Unit => Some(true),
            _ => None,
        }
    }

    /// An attribute that is an integer.
    fn get_int_attr(&self, name: &str) -> Option<i64> {
        self.0.int_attr(self.1, name)
    }

    fn __str__(&self) -> String {
        tilewright_ir::print_op(&self.0, self.1)
    }
}

#[pymethods]
impl IrRegion {
    /// A number that no other region of the module has.
    fn id(&self) -> u32 {
        self.1.as_u32()
    }

    /// How many blocks it has.
    fn size(&self) -> usize {
        self.0.region_blocks(self.1).len()
    }

    /// Whether it has no block.
    fn empty(&self) -> bool {
        self.size() == 0
    }

    /// The region that the operation stands in of which this is one.
    fn get_parent_region(&self) -> Option<IrRegion> {
        let block = self.0.parent_block(self.0.region_op(self.1)?)?;
        Some(IrRegion(self.0.clone(), self.0.block_region(block)?))
    }
}

#[pymethods]
impl IrBlock {
    /// A number that no other block of the module has.
    fn id(&self) -> u32 {
        self.1.as_u32()
    }

    fn get_num_arguments(&self) -> usize {
        self.0.block_args(self.1).len()
    }

    fn get_argument(&self, at: usize) -> PyResult<IrValue> {
        item(self.0.block_args(self.1), at, "argument").map(|value| IrValue(self.0.clone(), value))
    }

    /// The region that it is in.
    fn get_parent(&self) -> Option<IrRegion> {
        self.0.block_region(self.1).map(|region| IrRegion(self.0.clone(), region))
    }
}

#[pymethods]
impl IrValue {
    /// A number that no other value of the module has.
    fn id(&self) -> u32 {
        self.1.as_u32()
    }

    /// Its type, as text.
    fn get_type(&self) -> String {
        tilewright_ir::print_type(&self.0, self.0.value_type(self.1))
    }
}

/// Adds the classes, in a module of their own.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = &PyModule::new(parent.py(), "ir")?;
    parent.add_submodule(m)?;
    m.add_class::<IrModule>()?;
    m.add_class::<IrOperation>()?;
    m.add_class::<IrRegion>()?;
    m.add_class::<IrBlock>()?;
    m.add_class::<IrValue>()
}
