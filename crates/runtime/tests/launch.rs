//! What the driver is told, seen through a stand-in for it (`fake_cuda.c`), which needs no GPU.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock};

use tilewright_runtime::{
    Device, DeviceBuffer, Error, Event, LaunchConfig, Module, Stream, TensorMap, device_count, driver_version,
};

/// One parameter list of three.
const CUBIN: &[u8] = b"\x7fELF\x03";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The stand-in, loaded, with an empty log. Tests of one process share it, so they take turns.
struct Fake {
    log: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Fake {
    fn new() -> Fake {
        static DIR: OnceLock<PathBuf> = OnceLock::new();
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        let dir = DIR.get_or_init(|| {
            let dir = std::env::temp_dir().join(format!("tilewright-fake-cuda-{}", std::process::id()));
            std::fs::create_dir_all(&dir).expect("makes a folder");
            let library = dir.join("libcuda.so.1");
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cuda.c");
            let status = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&library)
                .arg(source)
                .status()
                .expect("there is a C compiler: rustc links with it");
            assert!(status.success());
            // SAFETY: the other tests of this process wait for their turn, and nothing else reads the environment.
            unsafe {
                std::env::set_var("TILEWRIGHT_LIBCUDA", &library);
                std::env::set_var("FAKE_CUDA_LOG", dir.join("log"));
            }
            dir
        });
        let log = dir.join("log");
        std::fs::write(&log, "").expect("writes");
        Fake { log, _turn: turn }
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).expect("reads").lines().map(str::to_string).collect()
    }
}

#[test]
fn properties_are_read() {
    let _fake = Fake::new();
    assert_eq!(device_count().expect("counts"), 1);
    assert_eq!(driver_version().expect("answers"), (12, 8));
    let device = Device::get(0).expect("opens");
    assert_eq!(device.properties().compute_capability, (9, 0));
    assert_eq!(device.properties().name, "Fake H100");
    assert_eq!(device.properties().multiprocessors, 132);
    let error = Device::get(3).expect_err("there is none").to_string();
    assert!(error.contains("no GPU 3"), "{error}");
}

#[test]
fn a_launch_tells_the_driver_everything() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    let function = module.function("kernel", 100).expect("is there");
    assert_eq!(function.attributes().registers, 42);
    let before = fake.lines().len();
    let config = LaunchConfig::new([7, 2, 1], 128);
    let cells = [0xdead_beef_0000_0010, 0x3f80_0000, u64::MAX];
    // SAFETY: the stand-in only prints the parameters.
    unsafe { function.launch(&config, Stream(0x1234 as *mut _), &cells) }.expect("launches");
    assert_eq!(
        fake.lines()[before..],
        [
            "launch grid 7 2 1 block 128 1 1 shared 100 stream 0x1234",
            "  parameter 0 = 0xdeadbeef00000010",
            "  parameter 1 = 0x3f800000",
            "  parameter 2 = 0xffffffffffffffff",
        ],
        "and nothing else, such as a synchronization: a launch must be capturable"
    );
}

#[test]
fn clusters_go_the_extended_way() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    let function = module.function("kernel", 0).expect("is there");
    let mut config = LaunchConfig::new([8, 1, 1], 128);
    config.cluster = [2, 1, 1];
    config.programmatic_dependent = true;
    // SAFETY: the stand-in only prints the parameters.
    unsafe { function.launch(&config, Stream::default(), &[1, 2, 3]) }.expect("launches");
    let lines = fake.lines();
    assert!(lines.iter().any(|l| l == "  attribute 4 = 2 1 1"), "{lines:?}");
    assert!(lines.iter().any(|l| l == "  attribute 6 = 1 0 0"), "{lines:?}");
}

#[test]
fn many_parameters_are_passed() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), b"\x7fELF\x50").expect("loads");
    let function = module.function("kernel", 0).expect("is there");
    let cells: Vec<u64> = (0..80).collect();
    // SAFETY: the stand-in only prints the parameters.
    unsafe { function.launch(&LaunchConfig::new([1; 3], 32), Stream::default(), &cells) }.expect("launches");
    assert!(fake.lines().iter().any(|l| l == "  parameter 79 = 0x4f"));
}

#[test]
fn tensor_maps_stand_in_for_cells() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    let function = module.function("kernel", 0).expect("is there");
    let map = TensorMap {
        address: 0x1000,
        element: 6,
        dims: &[72, 100],
        strides: &[144],
        box_dims: &[64, 128],
        swizzle_bytes: 128,
        nan: true,
    };
    let bytes = map.encode().expect("encodes");
    let config = LaunchConfig::new([1; 3], 32);
    // SAFETY: the stand-in only prints the parameters.
    unsafe { function.launch_with_maps(&config, Stream::default(), &[1, 2, 3], &[(1, bytes)]) }
        .expect("launches");
    let lines = fake.lines();
    assert!(
        lines.contains(
            &"map of 6: rank 2 dims 72.. strides 144.. box 64.. steps 1 swizzle 3 promotion 2 fill 1"
                .to_string()
        ),
        "{lines:?}"
    );
    assert_eq!(
        lines[lines.len() - 3..],
        ["  parameter 0 = 0x1", "  parameter 1 = 0x1001", "  parameter 2 = 0x3"]
    );
    let error = TensorMap { strides: &[], ..map }.encode().expect_err("a stride is missing").to_string();
    assert!(error.contains("2 dimensions"), "{error}");
}

#[test]
fn an_empty_grid_launches_nothing() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    let function = module.function("kernel", 0).expect("is there");
    // SAFETY: nothing is launched.
    unsafe { function.launch(&LaunchConfig::new([4, 0, 1], 128), Stream::default(), &[]) }.expect("is fine");
    assert!(!fake.lines().iter().any(|l| l.starts_with("launch")));
}

#[test]
fn large_shared_memory_is_asked_for_and_too_much_refused() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    module.function("kernel", 1000).expect("fits");
    assert!(!fake.lines().iter().any(|l| l.starts_with("attribute")));
    module.function("kernel", 100_000).expect("fits");
    assert!(fake.lines().iter().any(|l| l == "attribute 8 = 100000"));
    let error = module.function("kernel", 300_000).expect_err("does not fit").to_string();
    assert!(error.contains("300128") && error.contains("232448"), "{error}");
}

#[test]
fn what_is_resident_is_asked_of_the_driver() {
    let fake = Fake::new();
    let module = Module::from_cubin(Device::get(0).expect("opens"), CUBIN).expect("loads");
    let function = module.function("kernel", 1000).expect("fits");
    assert_eq!(function.resident_clusters(128, [1; 3]).expect("says"), 2 * 132);
    assert!(fake.lines().iter().any(|l| l == "resident: 128 threads, 1000 bytes"));
    assert_eq!(function.resident_clusters(128, [2, 1, 1]).expect("says"), 66);
    assert!(fake.lines().iter().any(|l| l == "resident: clusters of 2, 128 threads, 1000 bytes"));
}

#[test]
fn errors_say_what_and_what_to_do() {
    let _fake = Fake::new();
    let device = Device::get(0).expect("opens");
    let error = Module::from_cubin(device, b"no elf").expect_err("is no cubin").to_string();
    assert!(error.contains("not a cubin"), "{error}");
    let error = Module::from_ptx(device, ".version 8.0\nbad").expect_err("is bad").to_string();
    assert!(error.contains("line 3: bad instruction"), "{error}");
    let module = Module::from_ptx(device, ".version 8.0").expect("loads");
    let error = module.function("missing", 0).expect_err("is not there");
    assert_eq!(error.code(), Some(500));
    assert!(error.to_string().contains("no kernel named missing"), "{error}");
    let function = module.function("kernel", 0).expect("is there");
    // SAFETY: the stand-in refuses the launch.
    let error = unsafe { function.launch(&LaunchConfig::new([1; 3], 512), Stream::default(), &[0]) };
    let error = error.expect_err("too many threads").to_string();
    assert!(error.contains("512 threads; this kernel allows 256"), "{error}");
    match DeviceBuffer::new(device, 64 << 20) {
        Err(Error::Driver { code: 2, hint, .. }) => assert!(hint.contains("out of memory")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_round_trips() {
    let _fake = Fake::new();
    let device = Device::get(0).expect("opens");
    let mut buffer = DeviceBuffer::from_bytes(device, b"tile").expect("allocates");
    let mut back = [0u8; 4];
    buffer.read(&mut back).expect("reads");
    assert_eq!(&back, b"tile");
    buffer.fill(7, Stream::default()).expect("fills");
    buffer.read(&mut back).expect("reads");
    assert_eq!(back, [7; 4]);
    assert!(buffer.write(b"tiles").is_err());
    let (start, end) = (Event::new(device).expect("makes"), Event::new(device).expect("makes"));
    start.record(Stream::default()).expect("records");
    end.record(Stream::default()).expect("records");
    assert_eq!(end.milliseconds_since(&start).expect("times"), 1.5);
}
