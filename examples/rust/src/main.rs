//! Compiles the softmax of `examples/softmax.py` and runs it with no Python in the process: on the CPU executor, and on
//! a GPU where there is one.
//!
//! `cargo run -p tilewright-example [FILE.py]`

use std::error::Error;

use tilewright_compiler::cache::Cache;
use tilewright_compiler::{
    Artifact, CudaTarget, Interp, Options, PythonEnvironment, Request, Target, compile,
};
use tilewright_frontend::{Signature, SourceHost};
use tilewright_interp::{Arg, Executable, Memory, RunOptions};
use tilewright_runtime::{
    Device, DeviceBuffer, KernelArgs, LaunchConfig, Module, Stream, TensorMap, device_count,
};

const ROWS: usize = 64;
/// Not a power of two, and no padding: the tile is as wide as the row.
const COLS: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../softmax.py");
    let file = std::env::args().nth(1).unwrap_or_else(|| default.to_string());
    let text = std::fs::read_to_string(&file).map_err(|e| format!("cannot read {file}: {e}"))?;
    let host = SourceHost::new(&file, &text)?;
    let x: Vec<f32> = (0..ROWS * COLS).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 250.0).collect();

    let mut out = vec![0.0f32; ROWS * COLS];
    on_cpu(&build(&host, &Interp)?, &x, &mut out)?;
    println!("CPU: {}", check(&x, &out)?);

    match device_count() {
        Ok(n) if n > 0 => {
            let device = Device::get(0)?;
            let (major, minor) = device.properties().compute_capability;
            let target = CudaTarget::for_device(10 * major + minor).ok_or("the GPU is not supported yet")?;
            let artifact = build(&host, &target)?;
            out.fill(0.0);
            on_gpu(device, &artifact, &x, &mut out)?;
            println!("{}: {}", device.properties().name, check(&x, &out)?);
        }
        _ => println!("no GPU here"),
    }
    Ok(())
}

/// Compiles `softmax_kernel(out_ptr, x_ptr, x_stride, out_stride, n_cols, BLOCK)`.
fn build(host: &SourceHost, target: &dyn Target) -> Result<Artifact, Box<dyn Error>> {
    let signature = Signature::parse(&format!("*fp32:16, *fp32:16, i32, i32, i32, {COLS}"))?;
    let (entry, options) = (host.function("softmax_kernel")?, Options::default());
    let mut request = Request::new(host, &entry, &signature, &options, target);
    request.python = PythonEnvironment::activated();
    Ok(compile(&request, &Cache::from_environment())?)
}

fn on_cpu(artifact: &Artifact, x: &[f32], out: &mut [f32]) -> Result<(), Box<dyn Error>> {
    let module = artifact.module.as_ref().ok_or("not compiled for the CPU executor")?;
    let kernel = Executable::compile(module, &artifact.metadata.name)?;
    let (out_address, x_address) = (out.as_mut_ptr() as u64, x.as_ptr() as u64);
    let mut memory = Memory::new();
    // SAFETY: both slices outlive the run, and nothing else touches them until it has ended.
    unsafe {
        memory.register(out_address, size_of_val(out) as u64, "out_ptr", true);
        memory.register(x_address, size_of_val(x) as u64, "x_ptr", false);
    }
    let cols = Arg::Int(COLS as i64);
    let args = [Arg::Pointer(out_address), Arg::Pointer(x_address), cols, cols, cols];
    kernel.run([ROWS as u32, 1, 1], &args, &memory, &RunOptions::default())?;
    Ok(())
}

fn on_gpu(
    device: &'static Device,
    artifact: &Artifact,
    x: &[f32],
    out: &mut [f32],
) -> Result<(), Box<dyn Error>> {
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
    device.make_current()?;
    let input = DeviceBuffer::from_bytes(device, &bytes(x))?;
    let output = DeviceBuffer::new(device, size_of_val(out))?;
    let module = match (artifact.bytes("cubin"), artifact.text("ptx")) {
        (Some(cubin), _) => Module::from_cubin(device, cubin)?,
        (None, Some(ptx)) => Module::from_ptx(device, ptx)?,
        (None, None) => return Err("not compiled for a GPU".into()),
    };
    let function = module.function(&artifact.metadata.name, artifact.metadata.shared)?;
    let mut args = KernelArgs::new();
    for bits in [output.pointer(), input.pointer(), COLS as u64, COLS as u64, COLS as u64] {
        args.push(bits);
    }
    let config = LaunchConfig::new([ROWS as u32, 1, 1], 32 * artifact.metadata.options.num_warps);
    let stream = Stream::default();
    // Of what TMA copies on Hopper, descriptors' blocks and operands of products, the launch makes maps; a softmax has none.
    let mut maps = Vec::new();
    for param in &artifact.metadata.tensor_maps {
        let numbers: Vec<u64> = param.numbers(args.cells()).collect();
        let tensor = param.tensor(&numbers);
        let map = TensorMap {
            address: tensor.address,
            element: param.element,
            dims: &tensor.dims,
            strides: &tensor.strides,
            box_dims: &tensor.box_dims,
            swizzle_bytes: param.swizzle_bytes,
            nan: param.nan,
        };
        maps.push((param.param as usize, map.encode()?));
    }
    // SAFETY: the parameters are those of the signature in `build`, and both buffers live until the stream is drained.
    unsafe { function.launch_with_maps(&config, stream, args.cells(), &maps) }?;
    stream.synchronize()?;
    let mut result = vec![0u8; size_of_val(out)];
    output.read(&mut result)?;
    for (value, bytes) in out.iter_mut().zip(result.chunks_exact(4)) {
        *value = f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Ok(())
}

/// Compares with a softmax in double precision.
fn check(x: &[f32], out: &[f32]) -> Result<String, String> {
    let mut worst = 0.0f64;
    for (row, got) in x.chunks(COLS).zip(out.chunks(COLS)) {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exp: Vec<f64> = row.iter().map(|&v| f64::from(v - max).exp()).collect();
        let sum: f64 = exp.iter().sum();
        for (e, &g) in exp.iter().zip(got) {
            worst = worst.max((e / sum - f64::from(g)).abs() * sum / e);
        }
    }
    if worst < 1e-5 {
        Ok(format!("largest relative error {worst:.1e}"))
    } else {
        Err(format!("off by {worst:e}"))
    }
}
