//! Linear layouts as Python's tools look at them (`triton.tools.LinearLayout`): those of the compiler, whose dimensions have any names here.

use std::fmt::Write;

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use tilewright_layout::{Dim, LinearLayout};

/// The most bits on a side of a layout; an index of more does not fit the compiler's.
const MAX_BITS: u32 = 31;

/// A linear map over F2 between index spaces with names, whose sizes are powers of two.
///
/// Its *bases*, the images of the powers of two, say all of it: `f(a ^ b) == f(a) ^ f(b)`.
#[pyclass(frozen, eq, name = "LinearLayout", module = "tilewright.tools")]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedLayout {
    ins: Vec<String>,
    outs: Vec<String>,
    /// The dimension with number `k` of either side is `Dim::Axis(k)`.
    layout: LinearLayout,
}

/// The dimension of a number. There are at most 64, by the names that [`NamedLayout::new`] takes.
fn dim(at: usize) -> Dim {
    Dim::Axis(at as u8)
}

/// The bits of a size.
fn bits(size: u32) -> PyResult<u32> {
    if size.is_power_of_two() {
        Ok(size.ilog2())
    } else {
        Err(PyValueError::new_err(format!("the size {size} is not a power of two")))
    }
}

/// The place of a name.
fn place(names: &[String], name: &str, side: &str) -> PyResult<usize> {
    names.iter().position(|n| n == name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no {side} dimension `{name}`; there are {}",
            names.join(", ")
        ))
    })
}

/// The names of one list, and those of the other one that it has not, behind them.
fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut names = first.to_vec();
    names.extend(second.iter().filter(|name| !first.contains(name)).cloned());
    names
}

impl NamedLayout {
    /// The layout with these bases, one index a dimension of the output each.
    fn new(bases: Vec<(String, Vec<Vec<u32>>)>, outs: Vec<(String, u32)>) -> PyResult<NamedLayout> {
        let total = outs.iter().try_fold(0, |sum, (_, size)| Ok::<_, PyErr>(sum + bits(*size)?))?;
        let inputs: usize = bases.iter().map(|(_, of_dim)| of_dim.len()).sum();
        if total > MAX_BITS || inputs > MAX_BITS as usize || outs.len() > 64 || bases.len() > 64 {
            return Err(PyValueError::new_err(format!(
                "{inputs} bits of input and {total} of output: a side has {MAX_BITS} at most, of 64 dimensions"
            )));
        }
        for names in [bases.iter().map(|b| &b.0).collect::<Vec<_>>(), outs.iter().map(|o| &o.0).collect()] {
            if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
                return Err(PyValueError::new_err(format!("the dimension `{}` is named twice", twice.1)));
            }
        }
        let flat = |basis: &[u32]| -> PyResult<u32> {
            if basis.len() != outs.len() {
                return Err(PyValueError::new_err(format!(
                    "a basis has {} indices, and there are {} dimensions of the output",
                    basis.len(),
                    outs.len()
                )));
            }
            let (mut index, mut shift) = (0u64, 0);
            for (part, (name, size)) in basis.iter().zip(&outs) {
                if part >= size {
                    return Err(PyValueError::new_err(format!(
                        "the basis {part} is outside of `{name}`, whose size is {size}"
                    )));
                }
                index |= u64::from(*part) << shift;
                shift += size.ilog2();
            }
            Ok(index as u32)
        };
        let flat_bases = bases
            .iter()
            .map(|(_, of_dim)| of_dim.iter().map(|basis| flat(basis)).collect::<PyResult<Vec<_>>>())
            .collect::<PyResult<Vec<_>>>()?;
        let ins: Vec<_> = flat_bases.iter().enumerate().map(|(at, of_dim)| (dim(at), &of_dim[..])).collect();
        let sizes: Vec<_> = outs.iter().enumerate().map(|(at, (_, size))| (dim(at), *size)).collect();
        let layout = LinearLayout::from_bases(&ins, &sizes).map_err(refused)?;
        let names = |(name, _): (String, _)| name;
        Ok(NamedLayout {
            ins: bases.into_iter().map(|(name, _)| name).collect(),
            outs: outs.into_iter().map(names).collect(),
            layout,
        })
    }

    /// The layout with each dimension numbered by its place in these names, which have all of its own.
    fn numbered(&self, ins: &[String], outs: &[String]) -> PyResult<LinearLayout> {
        let number = |names: &[String], name: &String| place(names, name, "common").map(dim);
        let bases = (self.ins.iter().enumerate())
            .map(|(at, name)| Ok((number(ins, name)?, self.layout.flat_bases(dim(at)))))
            .collect::<PyResult<Vec<_>>>()?;
        let sizes = (self.outs.iter().enumerate())
            .map(|(at, name)| Ok((number(outs, name)?, self.layout.out_size(dim(at)))))
            .collect::<PyResult<Vec<_>>>()?;
        LinearLayout::from_bases(&bases, &sizes).map_err(refused)
    }

    /// Of a layout whose dimensions are numbered by these names.
    fn named(layout: &LinearLayout, ins: &[String], outs: &[String]) -> PyResult<NamedLayout> {
        let name = |names: &[String], d: Dim| match d {
            Dim::Axis(at) => names[usize::from(at)].clone(),
            other => other.to_string(),
        };
        let bases = layout.in_dims().map(|i| {
            let of_dim = (layout.flat_bases(i).iter())
                .map(|&flat| layout.out_dims().map(|o| layout.out_part(flat, o)).collect())
                .collect();
            (name(ins, i), of_dim)
        });
        let sizes = layout.out_dims().map(|o| (name(outs, o), layout.out_size(o)));
        NamedLayout::new(bases.collect(), sizes.collect())
    }
}

/// What the compiler's layouts say to what can't be.
fn refused(error: tilewright_layout::LayoutError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A dimension of the input with its bases, each of which has an index for each dimension of the output.
type BasesOfDim = (String, Vec<Vec<u32>>);

#[pymethods]
impl NamedLayout {
    /// The layout without dimensions.
    #[new]
    fn empty() -> NamedLayout {
        NamedLayout::default()
    }

    /// `size` indices of `inDim` that are those of `outDim`.
    #[staticmethod]
    #[pyo3(signature = (size, inDim, outDim))]
    #[allow(non_snake_case, reason = "Triton's names of the parameters")]
    fn identity_1d(size: u32, inDim: String, outDim: String) -> PyResult<NamedLayout> {
        Self::strided_1d(size, 1, inDim, outDim)
    }

    /// `size` indices `i` of `inDim` that are `i * stride` of `outDim`, whose size is `size * stride`.
    #[staticmethod]
    #[pyo3(signature = (size, stride, inDim, outDim))]
    #[allow(non_snake_case, reason = "Triton's names of the parameters")]
    fn strided_1d(size: u32, stride: u32, inDim: String, outDim: String) -> PyResult<NamedLayout> {
        bits(stride)?;
        let whole = size.checked_mul(stride).filter(|whole| *whole <= 1 << 31);
        let whole =
            whole.ok_or_else(|| PyValueError::new_err(format!("{size} * {stride} indices are too many")))?;
        let bases = (0..bits(size)?).map(|bit| vec![stride << bit]).collect();
        NamedLayout::new(vec![(inDim, bases)], vec![(outDim, whole)])
    }

    /// `size` indices of `inDim` that all are index 0 of `outDim`.
    #[staticmethod]
    #[pyo3(signature = (size, inDim, outDim, outDimSize = 1))]
    #[allow(non_snake_case, reason = "Triton's names of the parameters")]
    fn zeros_1d(size: u32, inDim: String, outDim: String, outDimSize: u32) -> PyResult<NamedLayout> {
        let bases = vec![vec![0]; bits(size)? as usize];
        NamedLayout::new(vec![(inDim, bases)], vec![(outDim, outDimSize)])
    }

    /// The layout of a list of dimensions with their bases. Sizes that aren't given are the least that hold all bases.
    #[staticmethod]
    #[pyo3(signature = (bases, out_dim_names, out_dim_sizes = None, require_surjective = true))]
    fn from_bases(
        bases: Vec<BasesOfDim>,
        out_dim_names: Vec<String>,
        out_dim_sizes: Option<Vec<u32>>,
        require_surjective: bool,
    ) -> PyResult<NamedLayout> {
        let sizes = match out_dim_sizes {
            Some(sizes) if sizes.len() == out_dim_names.len() => sizes,
            Some(_) => {
                return Err(PyValueError::new_err(
                    "out_dim_names and out_dim_sizes must have the same length",
                ));
            }
            None if require_surjective => {
                let largest =
                    |at: usize| bases.iter().flat_map(|b| &b.1).filter_map(|basis| basis.get(at)).max();
                let size = |at| {
                    largest(at).map_or(Some(1), |index| index.checked_add(1)?.checked_next_power_of_two())
                };
                (0..out_dim_names.len()).map(size).collect::<Option<_>>().ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "a basis has more than the {MAX_BITS} bits that a layout holds"
                    ))
                })?
            }
            None => {
                return Err(PyValueError::new_err(
                    "out_dim_sizes must be provided when require_surjective is false",
                ));
            }
        };
        let made = NamedLayout::new(bases, out_dim_names.into_iter().zip(sizes).collect())?;
        if require_surjective && !made.layout.is_surjective() {
            return Err(PyValueError::new_err(
                "the bases do not reach every index: the layout is not surjective",
            ));
        }
        Ok(made)
    }

    /// `outer` after this one, whose outputs are the inputs of `outer`.
    fn compose(&self, outer: &NamedLayout) -> PyResult<NamedLayout> {
        for (at, name) in self.outs.iter().enumerate() {
            let taken = outer.layout.in_size(dim(place(&outer.ins, name, "input")?));
            if self.layout.out_size(dim(at)) > taken {
                let given = self.layout.out_size(dim(at));
                return Err(PyValueError::new_err(format!(
                    "`{name}` has the size {given}, and the outer layout takes {taken}"
                )));
            }
        }
        let inner = self.numbered(&self.ins, &outer.ins)?;
        let outer_layout = outer.numbered(&outer.ins, &outer.outs)?;
        let composed = inner.compose(&outer_layout).map_err(refused)?;
        NamedLayout::named(&composed, &self.ins, &outer.outs)
    }

    /// From this layout's inputs to those at which `other` has the same outputs.
    fn invert_and_compose(&self, other: &NamedLayout) -> PyResult<NamedLayout> {
        let outs = union(&other.outs, &self.outs);
        let size = |of: &NamedLayout, name: &String| {
            of.outs.iter().position(|n| n == name).map(|at| of.layout.out_size(dim(at)))
        };
        if let Some(name) = outs.iter().find(|name| size(self, name) != size(other, name)) {
            let words = |of| size(of, name).map_or("none".to_string(), |size| size.to_string());
            return Err(PyValueError::new_err(format!(
                "the outputs differ: of `{name}`, {} here and {} there",
                words(self),
                words(other)
            )));
        }
        let (here, there) = (self.numbered(&self.ins, &outs)?, other.numbered(&other.ins, &outs)?);
        let found = here.invert_and_compose(&there).map_err(refused)?;
        NamedLayout::named(&found, &self.ins, &other.ins)
    }

    /// The inverse of a layout that is one to one and reaches every index.
    fn invert(&self) -> PyResult<NamedLayout> {
        if !self.layout.is_invertible() {
            return Err(PyValueError::new_err("the layout is not invertible"));
        }
        self.pseudoinvert()
    }

    /// A layout that gives for each output an input that has it; the layout must reach every index.
    fn pseudoinvert(&self) -> PyResult<NamedLayout> {
        let inverse = self.layout.pseudo_inverse().map_err(refused)?;
        NamedLayout::named(&inverse, &self.outs, &self.ins)
    }

    /// Whether every output has an input.
    fn is_surjective(&self) -> bool {
        self.layout.is_surjective()
    }

    /// Whether no two inputs have the same output.
    fn is_injective(&self) -> bool {
        self.layout.is_injective()
    }

    /// Both.
    fn is_invertible(&self) -> bool {
        self.layout.is_invertible()
    }

    /// The names of the input's dimensions.
    fn get_in_dim_names(&self) -> Vec<String> {
        self.ins.clone()
    }

    /// The names of the output's dimensions.
    fn get_out_dim_names(&self) -> Vec<String> {
        self.outs.clone()
    }

    /// Each dimension of the input with its bases.
    #[getter]
    fn bases(&self) -> Vec<BasesOfDim> {
        let parts = |flat: u32| (0..self.outs.len()).map(|o| self.layout.out_part(flat, dim(o))).collect();
        let of_dim = |at| self.layout.flat_bases(dim(at)).iter().map(|&flat| parts(flat)).collect();
        self.ins.iter().enumerate().map(|(at, name)| (name.clone(), of_dim(at))).collect()
    }

    /// Each dimension of the output with its size.
    #[getter]
    fn out_dims(&self) -> Vec<(String, u32)> {
        self.outs.iter().enumerate().map(|(at, name)| (name.clone(), self.layout.out_size(dim(at)))).collect()
    }

    /// How many dimensions the input has.
    #[getter]
    fn num_in_dims(&self) -> usize {
        self.ins.len()
    }

    /// How many dimensions the output has.
    #[getter]
    fn num_out_dims(&self) -> usize {
        self.outs.len()
    }

    /// The outputs, by name, of an index for each dimension of the input.
    fn apply<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = inputs.iter().map(|(k, v)| Ok((k.extract()?, v.extract()?)));
        let inputs = inputs.collect::<PyResult<Vec<(String, u32)>>>()?;
        if let Some(missing) = self.ins.iter().find(|name| !inputs.iter().any(|(given, _)| given == *name)) {
            return Err(PyValueError::new_err(format!(
                "there is no index for the input dimension `{missing}`"
            )));
        }
        let mut indices = Vec::new();
        for (name, index) in &inputs {
            let at = dim(place(&self.ins, name, "input")?);
            if *index >= self.layout.in_size(at) {
                return Err(PyValueError::new_err(format!(
                    "the index {index} is outside of `{name}`, whose size is {}",
                    self.layout.in_size(at)
                )));
            }
            indices.push((at, *index));
        }
        let found = PyDict::new(py);
        for (name, (_, index)) in self.outs.iter().zip(self.layout.apply(&indices)) {
            found.set_item(name, index)?;
        }
        Ok(found)
    }

    /// The matrix over F2: a row for each bit of the output, a column for each of the input, the lowest first.
    fn get_matrix_view(&self) -> Vec<Vec<u32>> {
        let bases = self.layout.all_bases();
        (0..self.layout.total_out_bits()).map(|row| bases.iter().map(|b| b >> row & 1).collect()).collect()
    }

    /// Not there: a drawing of a shared memory's layout.
    #[pyo3(signature = (*_args, **_options))]
    fn get_shared_view(
        &self,
        _args: &Bound<'_, PyAny>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        Err(PyNotImplementedError::new_err("not supported yet: LinearLayout.get_shared_view"))
    }

    /// Not there: a drawing of who holds which element.
    #[pyo3(signature = (*_args, **_options))]
    fn get_distributed_view(
        &self,
        _args: &Bound<'_, PyAny>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        Err(PyNotImplementedError::new_err("not supported yet: LinearLayout.get_distributed_view"))
    }

    /// The direct sum: `other` lies outside of this one, and along dimensions that both have its indices are the high part.
    fn __mul__(&self, other: &NamedLayout) -> PyResult<NamedLayout> {
        let total = |of: &LinearLayout| of.total_in_bits().max(of.total_out_bits());
        if total(&self.layout) + total(&other.layout) > MAX_BITS {
            return Err(PyValueError::new_err(format!(
                "the product has more than {MAX_BITS} bits on a side"
            )));
        }
        let (ins, outs) = (union(&self.ins, &other.ins), union(&self.outs, &other.outs));
        let product = self.numbered(&ins, &outs)?.product(&other.numbered(&ins, &outs)?);
        NamedLayout::named(&product, &ins, &outs)
    }

    fn __repr__(&self) -> String {
        let mut text = String::new();
        for (name, of_dim) in self.bases() {
            for (bit, basis) in of_dim.iter().enumerate() {
                let parts: Vec<String> = basis.iter().map(u32::to_string).collect();
                // Writing to a string can't fail.
                let _ = writeln!(text, " - {name}={} -> ({})", 1u64 << bit, parts.join(", "));
            }
            if of_dim.is_empty() {
                let _ = writeln!(text, " - {name} is a size 1 dimension");
            }
        }
        let outs: Vec<String> =
            self.out_dims().iter().map(|(name, size)| format!("{name} (size {size})")).collect();
        let _ = write!(text, "where out dims are: [{}]", outs.join(", "));
        text
    }
}
