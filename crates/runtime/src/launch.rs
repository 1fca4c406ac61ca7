//! Launching a kernel.

use std::ffi::c_void;

use crate::driver::{CuLaunchAttribute, CuLaunchConfig, NO_CLUSTERS, Stream, driver};
use crate::error::{Error, Result, check};
use crate::module::Function;
use crate::tensor_map::TensorMapBytes;

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks (clusters × cluster size) along x, y, z.
    pub grid: [u32; 3],
    /// Threads a block.
    pub threads: u32,
    /// Blocks a cluster along x, y, z; `[1, 1, 1]` for none.
    pub cluster: [u32; 3],
    /// May start before the kernel ahead of it in the stream has ended (programmatic dependent launch).
    pub programmatic_dependent: bool,
    /// Every block must be resident at once (grid-wide synchronization).
    pub cooperative: bool,
}

impl LaunchConfig {
    /// A launch with nothing special about it.
    pub fn new(grid: [u32; 3], threads: u32) -> Self {
        LaunchConfig { grid, threads, cluster: [1; 3], programmatic_dependent: false, cooperative: false }
    }
}

/// The most parameters that [`KernelArgs`] holds without allocating.
const INLINE_ARGS: usize = 32;

/// The parameters that code made by Triton has behind the kernel's own: memory for its own use and for its profiler.
const OF_TRITON: usize = 2;

/// The values of a kernel's parameters, in order.
///
/// Each value (but for tensor maps) is kept in an 8-byte cell; the driver knows the parameter's real size from the code and copies that many
/// bytes, which on a little-endian host are the value's own.
#[derive(Debug, Default, Clone)]
pub struct KernelArgs {
    cells: Vec<u64>,
}

impl KernelArgs {
    /// No parameters yet.
    pub fn new() -> Self {
        KernelArgs { cells: Vec::with_capacity(INLINE_ARGS) }
    }

    /// Appends the bits of a parameter of at most 8 bytes, in the low end.
    #[inline]
    pub fn push(&mut self, bits: u64) {
        self.cells.push(bits);
    }

    /// The cells so far.
    pub fn cells(&self) -> &[u64] {
        &self.cells
    }
}

impl Function {
    /// Queues the kernel on a stream of the function's device. Neither waits nor allocates on the device.
    ///
    /// # Safety
    ///
    /// The parameters must be what the kernel expects: as many, with addresses that it may access as it does until it has
    /// ended. A wrong address can corrupt device memory or lose the context.
    #[inline]
    pub unsafe fn launch(&self, config: &LaunchConfig, stream: Stream, cells: &[u64]) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.launch_with_maps(config, stream, cells, &[]) }
    }

    /// As [`launch`](Function::launch), with tensor maps in place of some of the cells, or behind them: those of the numbers given.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Function::launch); the maps' tensors are accessed too.
    #[inline]
    pub unsafe fn launch_with_maps(
        &self,
        config: &LaunchConfig,
        stream: Stream,
        cells: &[u64],
        maps: &[(usize, TensorMapBytes)],
    ) -> Result<()> {
        if config.grid.contains(&0) {
            return Ok(()); // Nothing to run; the driver would call it an error.
        }
        self.device.make_current()?;
        let behind = maps.iter().filter(|(at, _)| *at >= cells.len()).count();
        if self.parameters > cells.len() + behind + OF_TRITON {
            return Err(Error::InvalidLaunch(format!(
                "the code has {} parameters, and the launch gives {}: it was not made for this kernel",
                self.parameters,
                cells.len()
            )));
        }
        // Code from elsewhere may have parameters behind those of the launch: no memory is given there.
        let nothing = 0u64;
        let nowhere = std::ptr::from_ref(&nothing).cast_mut().cast::<c_void>();
        let count = maps.iter().map(|(at, _)| at + 1).fold(cells.len().max(self.parameters), usize::max);
        let mut inline = [nowhere; INLINE_ARGS];
        let mut spilled;
        let params: &mut [*mut c_void] = if count <= INLINE_ARGS {
            &mut inline[..count]
        } else {
            spilled = vec![nowhere; count];
            &mut spilled
        };
        for (slot, cell) in params.iter_mut().zip(cells) {
            *slot = std::ptr::from_ref(cell).cast_mut().cast();
        }
        for (at, map) in maps {
            params[*at] = std::ptr::from_ref(map).cast_mut().cast();
        }
        let driver = driver()?;
        let [x, y, z] = config.grid;
        let plain = config.cluster == [1; 3] && !config.programmatic_dependent && !config.cooperative;
        if plain {
            // SAFETY: one pointer a parameter, each to an 8-byte cell that outlives the call (the driver copies the
            // values before it returns); the rest is the caller's promise.
            let code = unsafe {
                (driver.launch_kernel)(
                    self.function,
                    x,
                    y,
                    z,
                    config.threads,
                    1,
                    1,
                    self.dynamic_shared,
                    stream,
                    params.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            return check("cuLaunchKernel", code).map_err(|e| self.explain(e, config));
        }
        let Some(launch_ex) = driver.launch_kernel_ex else {
            return Err(Error::InvalidLaunch(NO_CLUSTERS.to_string()));
        };
        let mut attributes = Vec::with_capacity(4);
        // CUlaunchAttributeID
        if config.cooperative {
            attributes.push(CuLaunchAttribute::new(2, &[1]));
        }
        if config.cluster != [1; 3] {
            attributes.push(CuLaunchAttribute::cluster(config.cluster));
            attributes.push(CuLaunchAttribute::new(5, &[1])); // CU_CLUSTER_SCHEDULING_POLICY_SPREAD
        }
        if config.programmatic_dependent {
            attributes.push(CuLaunchAttribute::new(6, &[1]));
        }
        let launch = CuLaunchConfig {
            grid: config.grid,
            block: [config.threads, 1, 1],
            shared_bytes: self.dynamic_shared,
            stream,
            attributes: attributes.as_mut_ptr(),
            attribute_count: attributes.len() as u32,
        };
        // SAFETY: as above; the attributes outlive the call.
        let code = unsafe { launch_ex(&launch, self.function, params.as_mut_ptr(), std::ptr::null_mut()) };
        check("cuLaunchKernelEx", code).map_err(|e| self.explain(e, config))
    }

    #[cold]
    fn explain(&self, error: Error, config: &LaunchConfig) -> Error {
        error.with_hint(|| {
            let limits = self.device.properties();
            let mut found = Vec::new();
            for (axis, (asked, most)) in config.grid.iter().zip(limits.max_grid).enumerate() {
                if *asked > most {
                    found.push(format!("grid dimension {axis} is {asked}; the GPU allows {most}"));
                }
            }
            let most_threads = self.attributes().max_threads.min(limits.max_threads_per_block);
            if config.threads > most_threads {
                found.push(format!(
                    "the block has {} threads; this kernel allows {most_threads}",
                    config.threads
                ));
            }
            if config.cooperative {
                found.push(format!(
                    "programs of the whole grid wait for each other: {} blocks of {} threads must fit the GPU at once",
                    config.grid.iter().map(|&n| u64::from(n)).product::<u64>(),
                    config.threads
                ));
            }
            if found.is_empty() {
                format!(
                    "Launch: grid {:?}, {} threads, cluster {:?}",
                    config.grid, config.threads, config.cluster
                )
            } else {
                found.join("; ")
            }
        })
    }
}
