//! Loaded code: a cubin, or PTX that the driver compiles.

use std::ffi::{CString, c_int, c_void};

use crate::device::Device;
use crate::driver::{CuFunction, CuLaunchAttribute, CuLaunchConfig, CuModule, NO_CLUSTERS, Stream, driver};
use crate::error::{Error, Result, check};

/// Code loaded into a device's primary context. Dropping it unloads the code.
#[derive(Debug)]
pub struct Module {
    module: CuModule,
    device: &'static Device,
}

/// What the driver says about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionAttributes {
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Bytes of local memory a thread, which is where spilled registers go.
    pub local_bytes: u32,
    /// Bytes of statically allocated shared memory.
    pub static_shared_bytes: u32,
    /// The most threads a block may have.
    pub max_threads: u32,
}

/// A kernel of a [`Module`], ready to launch.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    pub(crate) function: CuFunction,
    pub(crate) device: &'static Device,
    attributes: FunctionAttributes,
    /// Dynamic shared memory that the function was allowed, in bytes.
    pub(crate) dynamic_shared: u32,
    /// How many parameters the code has; 0 where the driver cannot say.
    pub(crate) parameters: usize,
}

// CUjit_option
const JIT_ERROR_LOG_BUFFER: c_int = 5;
const JIT_ERROR_LOG_BUFFER_SIZE: c_int = 6;

// CUfunction_attribute
const FUNC_MAX_THREADS: c_int = 0;
const FUNC_SHARED_SIZE: c_int = 1;
const FUNC_LOCAL_SIZE: c_int = 3;
const FUNC_NUM_REGS: c_int = 4;
const FUNC_MAX_DYNAMIC_SHARED: c_int = 8;
const FUNC_NON_PORTABLE_CLUSTER: c_int = 14;

impl Module {
    /// Loads a cubin (an ELF image, as `ptxas` writes it).
    pub fn from_cubin(device: &'static Device, cubin: &[u8]) -> Result<Module> {
        if !cubin.starts_with(b"\x7fELF") {
            return Err(Error::InvalidLaunch(format!(
                "not a cubin: {} bytes that do not start with the ELF magic",
                cubin.len()
            )));
        }
        Module::load(device, cubin)
    }

    /// Has the driver compile PTX for the device: slower than `ptxas`, but always there.
    pub fn from_ptx(device: &'static Device, ptx: &str) -> Result<Module> {
        let text = CString::new(ptx).map_err(|_| {
            Error::InvalidLaunch("the PTX text contains a zero byte, so it is damaged".to_string())
        })?;
        Module::load(device, text.as_bytes_with_nul())
    }

    fn load(device: &'static Device, image: &[u8]) -> Result<Module> {
        let driver = driver()?;
        device.make_current()?;
        let mut module = CuModule(std::ptr::null_mut());
        let mut log = vec![0u8; 8192];
        let mut options = [JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        // SAFETY: the image is an ELF file or zero-terminated text; the log buffer is as long as the option says.
        let code = unsafe {
            (driver.module_load_data_ex)(
                &mut module,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        check("cuModuleLoadDataEx", code).map_err(|e| {
            e.with_hint(|| {
                let text = log.split(|b| *b == 0).next().unwrap_or_default();
                String::from_utf8_lossy(text).trim().to_string()
            })
        })?;
        Ok(Module { module, device })
    }

    /// The kernel of this name, allowed to use `dynamic_shared` bytes of dynamic shared memory.
    pub fn function(&self, name: &str, dynamic_shared: u32) -> Result<Function> {
        let driver = driver()?;
        self.device.make_current()?;
        let c_name =
            CString::new(name).map_err(|_| Error::InvalidLaunch(format!("{name:?} is not a kernel name")))?;
        let mut function = CuFunction(std::ptr::null_mut());
        // SAFETY: writes one handle; the name is zero-terminated.
        check("cuModuleGetFunction", unsafe {
            (driver.module_get_function)(&mut function, self.module, c_name.as_ptr())
        })
        .map_err(|e| e.with_hint(|| format!("The module has no kernel named {name}")))?;
        let attribute = |id: c_int| -> Result<u32> {
            let mut value: c_int = 0;
            // SAFETY: writes one int.
            check("cuFuncGetAttribute", unsafe { (driver.func_get_attribute)(&mut value, id, function) })?;
            Ok(value as u32)
        };
        let attributes = FunctionAttributes {
            registers: attribute(FUNC_NUM_REGS)?,
            local_bytes: attribute(FUNC_LOCAL_SIZE)?,
            static_shared_bytes: attribute(FUNC_SHARED_SIZE)?,
            max_threads: attribute(FUNC_MAX_THREADS)?,
        };
        let properties = self.device.properties();
        let total = dynamic_shared.saturating_add(attributes.static_shared_bytes);
        if total > properties.max_shared_memory {
            return Err(Error::OutOfResources(format!(
                "shared memory. {name} needs {total} bytes a block; {} has {}. \
                 Use smaller tiles, or lower num_stages",
                properties.name, properties.max_shared_memory
            )));
        }
        if total > properties.default_shared_memory {
            // SAFETY: plain call; the function belongs to the current context.
            check("cuFuncSetAttribute", unsafe {
                (driver.func_set_attribute)(function, FUNC_MAX_DYNAMIC_SHARED, dynamic_shared as c_int)
            })?;
        }
        let parameters = driver.func_get_param_info.map_or(0, |info| {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: writes two numbers; an index behind the last parameter gives an error.
            (0..4096usize)
                .take_while(|&index| unsafe { info(function, index, &mut offset, &mut size) } == 0)
                .count()
        });
        Ok(Function { function, device: self.device, attributes, dynamic_shared, parameters })
    }

    /// The GPU the code is loaded on.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// The driver's handle, as a number: by which other libraries find what lies in the module.
    pub fn handle(&self) -> usize {
        self.module.0 as usize
    }
}

impl Function {
    /// The driver's handle, as a number: what other libraries launch by.
    pub fn handle(&self) -> usize {
        self.function.0 as usize
    }

    /// Registers, spills and limits.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// The GPU the kernel is loaded on.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// How many clusters of blocks of so many threads the GPU holds at once; of blocks, where there are no clusters.
    pub fn resident_clusters(&self, threads: u32, cluster: [u32; 3]) -> Result<u32> {
        let driver = driver()?;
        self.device.make_current()?;
        if cluster != [1; 3] {
            let Some(max_active_clusters) = driver.max_active_clusters else {
                return Err(Error::InvalidLaunch(NO_CLUSTERS.to_string()));
            };
            let mut attributes = [CuLaunchAttribute::cluster(cluster)];
            let launch = CuLaunchConfig {
                grid: cluster,
                block: [threads, 1, 1],
                shared_bytes: self.dynamic_shared,
                stream: Stream::default(),
                attributes: attributes.as_mut_ptr(),
                attribute_count: attributes.len() as u32,
            };
            let mut clusters: c_int = 0;
            // SAFETY: writes one int; the attributes outlive the call, and the function belongs to the current context.
            check("cuOccupancyMaxActiveClusters", unsafe {
                max_active_clusters(&mut clusters, self.function, &launch)
            })?;
            return Ok(clusters.max(1) as u32);
        }
        let mut of_multiprocessor: c_int = 0;
        // SAFETY: writes one int; the function belongs to the current context.
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            let shared = self.dynamic_shared as usize;
            (driver.max_active_blocks)(&mut of_multiprocessor, self.function, threads as c_int, shared)
        })?;
        Ok(of_multiprocessor.max(1) as u32 * self.device.properties().multiprocessors)
    }

    /// Allows clusters of more than 8 blocks, which not every GPU of the architecture can run.
    pub fn allow_large_clusters(&self) -> Result<()> {
        let driver = driver()?;
        self.device.make_current()?;
        // SAFETY: plain call.
        check("cuFuncSetAttribute", unsafe {
            (driver.func_set_attribute)(self.function, FUNC_NON_PORTABLE_CLUSTER, 1)
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(driver) = driver()
            && self.device.make_current().is_ok()
        {
            // SAFETY: the handle came from cuModuleLoadDataEx and is dropped once. A failure (for instance because the
            // process is ending) leaves nothing for us to do.
            unsafe { (driver.module_unload)(self.module) };
        }
    }
}
