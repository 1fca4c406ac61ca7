//! The grid of a launch: one to three extents, or a function of the launch's arguments that gives them.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use tilewright_compiler::LaunchShape;

use crate::params::{Bindings, Params};
use crate::wrong_call;

/// Extents along x, y and z.
pub type Grid = [u32; 3];

/// The driver's limits.
const MOST: Grid = [i32::MAX as u32, 65535, 65535];

/// Reads a grid: an integer, a tuple or list of one to three, or a callable that is given a dict of the arguments.
pub fn read<'py>(grid: &Bound<'py, PyAny>, params: &Params, bindings: &Bindings<'_, 'py>) -> PyResult<Grid> {
    if let Ok(tuple) = grid.cast_exact::<PyTuple>() {
        return extents(tuple.iter(), tuple.len(), grid, params);
    }
    if grid.is_callable() {
        let result = grid.call1((params.as_dict(grid.py(), bindings)?,))?;
        if result.is_callable() {
            return Err(wrong(&result, params));
        }
        return read(&result, params, bindings);
    }
    if grid.cast::<PyInt>().is_ok() {
        return extents(std::iter::once(grid.clone()), 1, grid, params);
    }
    match grid.try_iter() {
        Ok(items) => {
            let items = items.collect::<PyResult<Vec<_>>>()?;
            extents(items.iter().cloned(), items.len(), grid, params)
        }
        // A single integer of another type, such as NumPy's.
        Err(_) => match grid.call_method0("__index__") {
            Ok(int) => extents(std::iter::once(int), 1, grid, params),
            Err(_) => Err(wrong(grid, params)),
        },
    }
}

/// The grid in CTAs: what a grid counts is run by a cluster of them.
pub fn of_ctas(grid: Grid, launch: &LaunchShape) -> PyResult<Grid> {
    let mut ctas = grid;
    for (axis, (extent, of_cluster)) in ctas.iter_mut().zip(launch.cluster_dims).enumerate() {
        let product = extent.checked_mul(of_cluster).filter(|&n| n <= MOST[axis]);
        *extent = product.ok_or_else(|| too_many_ctas(grid, launch, axis))?;
    }
    Ok(ctas)
}

/// The grid that is started where a device holds so many programs at once, if each of the kernel's does the work of several.
pub fn resident(grid: Grid, launch: &LaunchShape, held: u32) -> PyResult<Grid> {
    let whole = launch.resident_programs > 1;
    let started = match launch.resident_programs {
        0 => Some(grid),
        _ => tilewright_compiler::resident_grid(grid, held, whole),
    };
    started.ok_or_else(|| too_many_in_a_row(grid, held, whole))
}

#[cold]
fn too_many_in_a_row([x, y, z]: Grid, held: u32, whole: bool) -> PyErr {
    let (what, others) = match whole {
        true => (format!("{x}x{y}x{z} programs"), "fewer programs"),
        false => (format!("{x} programs along x"), "fewer programs, or the other dimensions"),
    };
    wrong_call::value_error(
        format!("a grid of {what} is too large with persistent=True"),
        format!("it takes {} on this device; use {others}", MOST[0].saturating_sub(held)),
    )
}

/// The grid in programs, which may form clusters that the launch's grid counts.
pub fn of_programs(grid: Grid, launch: &LaunchShape) -> PyResult<Grid> {
    if launch.grid_of_clusters { of_ctas(grid, launch) } else { Ok(grid) }
}

#[cold]
fn too_many_ctas(grid: Grid, launch: &LaunchShape, axis: usize) -> PyErr {
    let (count, name) = (grid[axis], ["x", "y", "z"][axis]);
    let what = match launch.grid_of_clusters {
        true => format!("{count} clusters of {} programs along {name}", launch.cluster_dims[axis]),
        false => format!("{count} programs, each run by num_ctas={} CTAs,", launch.cluster_dims[0]),
    };
    wrong_call::value_error(
        format!("a grid of {what} is too large"),
        format!(
            "a GPU starts at most {} CTAs along {name}; use fewer programs with a loop, or the other dimensions",
            MOST[axis]
        ),
    )
}

fn extents<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    len: usize,
    grid: &Bound<'py, PyAny>,
    params: &Params,
) -> PyResult<Grid> {
    if len == 0 {
        return Err(wrong(grid, params));
    }
    let mut extents = [1u32; 3];
    for (axis, item) in items.enumerate() {
        // Programs write a fourth of 1, which Triton does not look at.
        if axis >= 3 {
            match item.extract() {
                Ok(1u32) => continue,
                _ => return Err(wrong(grid, params)),
            }
        }
        let value: i64 = match item.extract() {
            Ok(value) => value,
            Err(_) => {
                let index = item.call_method0("__index__").map_err(|_| wrong(grid, params))?;
                index.extract().map_err(|_| too_large(axis, &item, params))?
            }
        };
        if value < 0 {
            return Err(wrong_call::value_error(
                format!("the grid of {} is negative: dimension {axis} is {value}", params.kernel),
                "a grid counts programs; use max(0, …) where nothing is to be done",
            ));
        }
        // The same on the CPU, so that a program that runs there also runs on a GPU.
        if value > i64::from(MOST[axis]) {
            return Err(too_large(axis, &item, params));
        }
        extents[axis] = value as u32;
    }
    Ok(extents)
}

#[cold]
fn wrong(grid: &Bound<'_, PyAny>, params: &Params) -> PyErr {
    let shown = grid.repr().map(|r| r.to_string()).unwrap_or_default();
    let kernel = &params.kernel;
    wrong_call::type_error(
        format!("the grid of {kernel} is {shown}"),
        format!(
            "it must be one to three integers, or a function of the arguments that gives them: {kernel}[(blocks,)](…) or \
             {kernel}[lambda meta: (cdiv(n, meta['BLOCK']),)](…)"
        ),
    )
}

#[cold]
fn too_large(axis: usize, item: &Bound<'_, PyAny>, params: &Params) -> PyErr {
    let shown = item.repr().map(|r| r.to_string()).unwrap_or_default();
    wrong_call::value_error(
        format!("the grid of {} is too large: dimension {axis} is {shown}", params.kernel),
        "a GPU takes at most 2147483647 programs along x, and 65535 along y and z",
    )
}
