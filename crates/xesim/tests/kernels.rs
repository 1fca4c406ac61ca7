//! Kernels as Intel's OpenCL compiler makes them, and what each check says of one that is wrong.
//!
//! `kernels/NAME.spvasm` is `spirv-dis` of what `ocloc compile -file NAME.cl -device pvc -spv_only` makes, without names and strings; in `count`
//! the scope of the atomic on global memory was made that of the device, since OpenCL C's `atomic_add` gets the work group's.

use half::f16;
use std::io::Write;
use std::process::{Command, Stdio};
use tilewright_xesim::{Finding, FindingKind, Launch, Memory, Param, Program, SimOptions};

/// Assembles SPIR-V text by `spirv-as`.
fn assembled(text: &str) -> Vec<u8> {
    let assembler = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/spirv-as");
    let mut tool = Command::new(assembler)
        .args(["--target-env", "spv1.4", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("spirv-as, which `make setup` installs");
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = tool.wait_with_output().unwrap();
    assert!(out.status.success());
    out.stdout
}

fn program(text: &str) -> Program {
    Program::parse(&assembled(text)).unwrap()
}

/// `text` with `from`, which is there, replaced.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replace(from, to)
}

/// Memory at a multiple of 64 bytes.
#[repr(align(64))]
struct Aligned<T, const N: usize>([T; N]);

fn run<const N: usize>(
    text: &str,
    kernel: &str,
    groups: [u32; 3],
    items: u32,
    arrays: [&mut [u8]; N],
    rest: &[i64],
) -> Vec<Finding> {
    let mut memory = Memory::new();
    let mut params = vec![];
    for (k, a) in arrays.into_iter().enumerate() {
        params.push(Param::Pointer(a.as_ptr() as u64));
        // SAFETY: the arrays outlive the launch, and nothing else touches them meanwhile.
        unsafe { memory.register_slice(a, &format!("array {k}")) };
    }
    params.extend(rest.iter().map(|&n| Param::Int(n)));
    let launch = Launch { kernel: kernel.into(), groups, items, params };
    program(text).launch(&launch, &memory, &SimOptions::default()).unwrap().findings
}

fn bytes<T: Copy>(a: &mut [T]) -> &mut [u8] {
    // SAFETY: numbers are bytes, and any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(a.as_mut_ptr().cast(), std::mem::size_of_val(a)) }
}

const ADD: &str = include_str!("kernels/add.spvasm");
const TOTAL: &str = include_str!("kernels/total.spvasm");
const SHUFFLE: &str = include_str!("kernels/shuffle.spvasm");
const DOT: &str = include_str!("kernels/dot.spvasm");
const GEMM: &str = include_str!("kernels/gemm.spvasm");
const SOFTMAX: &str = include_str!("kernels/softmax.spvasm");
const COUNT: &str = include_str!("kernels/count.spvasm");
const TRANSPOSE: &str = include_str!("kernels/transpose.spvasm");

fn add(text: &str) -> (Vec<Finding>, Vec<f32>) {
    let mut x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let mut y: Vec<f32> = (0..100).map(|i| 0.5 * i as f32).collect();
    let mut z = vec![0f32; 100];
    let found = run(text, "add", [4, 1, 1], 32, [bytes(&mut x), bytes(&mut y), bytes(&mut z)], &[100]);
    (found, z)
}

#[test]
fn vectors_are_added() {
    let (found, z) = add(ADD);
    assert_eq!(found, []);
    assert!(z.iter().enumerate().all(|(i, &z)| z == 1.5 * i as f32));
}

#[test]
fn an_access_out_of_bounds_names_instruction_and_lane() {
    let (found, _) = add(&with(ADD, "OpSLessThan", "OpINotEqual"));
    let f = &found[0];
    assert_eq!(f.kind, FindingKind::GlobalBounds);
    assert!(f.instruction.contains("OpLoad"), "{f}");
    // Item 101 of the fourth group of 32.
    assert_eq!((f.group, f.sub_group, f.lane), ([3, 0, 0], 0, 5), "{f}");
    assert!(f.address.is_some());
}

fn total(text: &str) -> (Vec<Finding>, Vec<f32>) {
    let mut x: Vec<f32> = (0..128).map(|i| i as f32).collect();
    let mut z = vec![0f32; 2];
    let found = run(text, "total", [2, 1, 1], 64, [bytes(&mut x), bytes(&mut z)], &[]);
    (found, z)
}

#[test]
fn items_reduce_by_local_memory() {
    let (found, z) = total(TOTAL);
    assert_eq!(found, []);
    assert_eq!(z, [2016.0, 6112.0]);
}

#[test]
fn a_race_in_local_memory_is_reported() {
    let barrier = TOTAL.lines().find(|l| l.contains("OpControlBarrier")).unwrap();
    let (found, _) = total(&with(TOTAL, barrier, ""));
    assert!(
        found.iter().any(|f| f.kind == FindingKind::SharedRace && f.instruction.contains("OpLoad")),
        "{found:#?}"
    );
    assert!(found.iter().all(|f| !f.message.contains("line ")), "{found:#?}");
}

/// `total` with other instructions in the place of its barrier.
fn total_by(barriers: &[&str], order: &str) -> (Vec<Finding>, Vec<f32>) {
    let barrier = TOTAL.lines().find(|l| l.contains("OpControlBarrier")).unwrap();
    let lines = barriers.iter().map(|name| format!("OpControlBarrier{name} %uint_2 %uint_2 {order}"));
    total(&with(TOTAL, barrier, &lines.collect::<Vec<_>>().join("\n")))
}

#[test]
fn a_split_barrier_orders_memory_where_it_says_so() {
    let halves = ["ArriveINTEL", "WaitINTEL"];
    assert_eq!(total_by(&halves, "%uint_272"), (vec![], vec![2016.0, 6112.0]));
    let (found, _) = total_by(&halves, "%uint_0");
    assert!(found.iter().any(|f| f.kind == FindingKind::SharedRace), "{found:#?}");
}

#[test]
fn halves_of_a_barrier_come_in_pairs() {
    let (arrive, wait) = ("ArriveINTEL", "WaitINTEL");
    for (barriers, message) in [
        (&[wait][..], "without having arrived"),
        (&[arrive, arrive, wait], "arrives again without having waited"),
        (&[arrive, "", wait], "a barrier between the two halves of a split one"),
        (&[arrive, wait, wait], "without having arrived"),
    ] {
        let (found, _) = total_by(barriers, "%uint_272");
        assert!(found.iter().any(|f| f.message.contains(message)), "{barriers:?}: {found:#?}");
    }
    let end = "%if_end18 = OpLabel";
    let arrives = format!("{end}\nOpControlBarrierArriveINTEL %uint_2 %uint_2 %uint_272");
    let (found, _) = total(&with(TOTAL, end, &arrives));
    assert!(found.iter().any(|f| f.message.contains("ends without having waited")), "{found:#?}");
}

#[test]
fn local_memory_that_nothing_wrote_is_reported() {
    let store = TOTAL.lines().find(|l| l.contains("OpStore")).unwrap();
    let (found, _) = total(&with(TOTAL, store, ""));
    assert!(found.iter().any(|f| f.kind == FindingKind::UninitializedShared), "{found:#?}");
}

fn shuffle(text: &str) -> (Vec<Finding>, Vec<i32>) {
    let mut x: Vec<i32> = (0..32).collect();
    let mut z = vec![0; 32];
    let found = run(text, "shuffle", [1, 1, 1], 32, [bytes(&mut x), bytes(&mut z)], &[]);
    (found, z)
}

#[test]
fn lanes_exchange_within_their_sub_group() {
    let (found, z) = shuffle(SHUFFLE);
    assert_eq!(found, []);
    for i in 0..32 {
        let (sub, lane) = (i / 16, i % 16);
        let sum = (0..16).map(|l| sub * 16 + l).sum::<i32>();
        assert_eq!(z[i as usize], sub * 16 + 15 - lane + 1000 * sub + 100_000 * sum);
    }
}

#[test]
fn a_lane_that_is_not_there_is_reported() {
    let (found, _) = shuffle(&with(SHUFFLE, "OpConstant %uint 15", "OpConstant %uint 16"));
    assert_eq!(found[0].kind, FindingKind::Trap);
    assert!(found[0].message.contains("not below"), "{}", found[0]);
    assert!(found[0].instruction.contains("OpSubgroupShuffleINTEL"));
    assert_eq!((found[0].sub_group, found[0].lane), (found[0].sub_group, 0));
}

/// Rows and columns that no block divides.
const M: usize = 11;
const N: usize = 40;
const K: usize = 40;

struct Product {
    found: Vec<Finding>,
    c: Vec<f32>,
    exact: Vec<f32>,
}

/// Rows are whole multiples of 16 bytes, as blocks want them.
fn dot(text: &str) -> Product {
    let mut a = Aligned([f16::ZERO; M * K]);
    let mut b = Aligned([f16::ZERO; K * N]);

    let mut c = Aligned([7f32; M * N]);
    a.0.iter_mut().enumerate().for_each(|(i, v)| *v = f16::from_f32((i * 7 % 13) as f32 - 6.0));
    b.0.iter_mut().enumerate().for_each(|(i, v)| *v = f16::from_f32((i * 5 % 11) as f32 - 5.0));
    let exact = (0..M * N)
        .map(|i| (0..K).map(|k| a.0[i / N * K + k].to_f32() * b.0[k * N + i % N].to_f32()).sum())
        .collect();
    let groups = [N.div_ceil(16) as u32, M.div_ceil(8) as u32, 1];
    let sizes = [M as i64, N as i64, K as i64];
    let found = run(text, "dot", groups, 16, [bytes(&mut a.0), bytes(&mut b.0), bytes(&mut c.0)], &sizes);
    Product { found, c: c.0.to_vec(), exact }
}

#[test]
fn blocks_are_cut_at_the_edges_of_a_matrix() {
    let p = dot(DOT);
    assert_eq!(p.found, []);
    assert_eq!(p.c, p.exact);
}

#[test]
fn a_matrix_larger_than_its_memory_is_reported() {
    // The height of `c`: its rows, not one less.
    let p = dot(&with(DOT, "%sub26 = OpISub %uint %m %uint_1", "%sub26 = OpISub %uint %m %uint_0"));
    assert!(
        p.found
            .iter()
            .any(|f| f.kind == FindingKind::GlobalBounds && f.instruction.contains("OpFunctionCall")),
        "{:#?}",
        p.found
    );
}

#[test]
fn a_block_at_a_place_of_each_lane_is_reported() {
    let text = with(
        DOT,
        "OpDecorate %__spirv_BuiltInWorkgroupId BuiltIn WorkgroupId",
        "OpDecorate %__spirv_BuiltInWorkgroupId BuiltIn LocalInvocationId",
    );
    let p = dot(&text);
    assert_eq!(p.found[0].kind, FindingKind::Trap);
    assert!(p.found[0].message.contains("same in all lanes"), "{}", p.found[0]);
}

#[test]
fn what_is_not_supported_says_so() {
    let text = with(DOT, "_matrix_mad_k16", "_matrix_mad_k99");
    let launch = Launch { kernel: "dot".into(), groups: [1; 3], items: 16, params: vec![Param::Int(0); 6] };
    let e = program(&text).launch(&launch, &Memory::new(), &SimOptions::default()).err().unwrap();
    assert!(e.message.starts_with("not supported yet: the function"), "{e}");
    assert!(Program::parse(b"no module").is_err());
}

#[test]
fn sub_groups_take_rows_of_softmax() {
    const ROWS: usize = 4;
    const COLUMNS: usize = 50;
    let mut x: Vec<f16> = (0..ROWS * COLUMNS).map(|i| f16::from_f32((i * 7 % 23) as f32 / 4.0)).collect();
    let mut y = vec![0f32; ROWS * COLUMNS];
    let found = run(SOFTMAX, "softmax", [2, 1, 1], 32, [bytes(&mut x), bytes(&mut y)], &[COLUMNS as i64]);
    assert_eq!(found, []);
    for (x, y) in x.chunks(COLUMNS).zip(y.chunks(COLUMNS)) {
        let top = x.iter().map(|x| x.to_f64()).fold(f64::MIN, f64::max);
        let sum: f64 = x.iter().map(|x| (x.to_f64() - top).exp()).sum();
        for (x, y) in x.iter().zip(y) {
            let want = (x.to_f64() - top).exp() / sum;
            assert!((f64::from(*y) - want).abs() <= 1e-6 * want, "{y} {want}");
        }
    }
}

fn count(text: &str) -> (Vec<Finding>, Vec<i32>) {
    let mut x: Vec<i32> = (0..128).map(|i| i * i % 7 + 3).collect();
    let mut z = vec![0; 6];
    let found = run(text, "count", [2, 1, 1], 64, [bytes(&mut x), bytes(&mut z)], &[]);
    (found, z)
}

#[test]
fn atomics_count_and_phis_swap() {
    let (found, z) = count(COUNT);
    assert_eq!(found, []);
    let mut want = vec![0; 4];
    (0..128).for_each(|i| want[((i * i % 7 + 3) & 3) as usize] += 1);
    // 0 and 1 change places three times.
    want.extend([1, 1]);
    assert_eq!(z, want);
}

#[test]
fn a_race_between_groups_is_reported() {
    // What was atomic among all groups is atomic within each.
    let atomic = COUNT.lines().rfind(|l| l.contains("OpAtomicIAdd")).unwrap();
    let (found, _) = count(&with(COUNT, atomic, &with(atomic, "%uint_1 %uint_0", "%uint_2 %uint_0")));
    let f = found.iter().find(|f| f.kind == FindingKind::GlobalRace).unwrap();
    assert!(f.instruction.contains("OpAtomicIAdd"), "{f}");
    assert!(f.message.contains("lane") && f.message.contains("of work group ("), "{f}");
}

#[test]
fn a_barrier_in_a_branch_is_reported() {
    // Of a sub-group, only the lanes below 4 come to the second barrier's place in the branch.
    let barrier = COUNT.lines().find(|l| l.contains("OpControlBarrier")).unwrap();
    let store = COUNT.lines().find(|l| l.contains("OpStore")).unwrap();
    let (found, _) = count(&with(COUNT, store, &format!("{store}\n{barrier}")));
    assert!(found.iter().any(|f| f.kind == FindingKind::DivergentBarrier), "{found:#?}");
}

#[test]
fn blocks_transpose_and_bf16_is_multiplied() {
    let mut x = Aligned(std::array::from_fn::<u32, 256, _>(|i| i as u32));
    let mut z = Aligned([0u32; 128]);
    let mut s = [0f32; 16];
    let arrays = [bytes(&mut x.0), bytes(&mut z.0), bytes(&mut s)];
    let found = run(TRANSPOSE, "transpose", [1, 1, 1], 16, arrays, &[]);
    assert_eq!(found, []);
    // Row `i` is column `4 + i`.
    assert!(z.0.iter().enumerate().all(|(n, &z)| z as usize == n % 16 * 16 + 4 + n / 16));
    // Lane `k` has `2^k` of `a`; rows of `b` are 1 and 2 in turns.
    let sum: f32 = (0..16).map(|k| 2f32.powi(k) * if k % 2 == 0 { 1.0 } else { 2.0 }).sum();
    assert_eq!(s, [sum + 0.5; 16]);
}

#[test]
fn a_base_that_is_not_aligned_is_reported() {
    let mut x = Aligned([0u32; 512]);
    let mut z = Aligned([0u32; 128]);
    let mut s = [0f32; 16];
    let arrays = [bytes(&mut x.0[1..257]), bytes(&mut z.0), bytes(&mut s)];
    let found = run(TRANSPOSE, "transpose", [1, 1, 1], 16, arrays, &[]);
    assert!(found.iter().any(|f| f.message.contains("multiple of 64 bytes")), "{found:#?}");
}

#[test]
fn a_product_of_256_by_256_by_32_by_32_sub_groups() {
    const SIDE: usize = 256;
    const DEPTH: usize = 32;
    let mut a = Box::new(Aligned([f16::ZERO; SIDE * DEPTH]));
    let mut b = Box::new(Aligned([f16::ZERO; SIDE * DEPTH]));
    let mut c = Box::new(Aligned([0f32; SIDE * SIDE]));
    a.0.iter_mut().enumerate().for_each(|(i, v)| *v = f16::from_f32((i * 7 % 13) as f32 - 6.0));
    b.0.iter_mut().enumerate().for_each(|(i, v)| *v = f16::from_f32((i * 5 % 11) as f32 - 5.0));
    let sizes = [SIDE as i64, SIDE as i64, DEPTH as i64];
    let arrays = [bytes(&mut a.0), bytes(&mut b.0), bytes(&mut c.0)];
    let found = run(GEMM, "gemm", [1, 1, 1], 512, arrays, &sizes);
    assert_eq!(found, []);
    for (i, &c) in c.0.iter().enumerate() {
        let (row, column) = (i / SIDE, i % SIDE);
        let want: f32 =
            (0..DEPTH).map(|k| a.0[row * DEPTH + k].to_f32() * b.0[k * SIDE + column].to_f32()).sum();
        assert_eq!(c, want, "row {row}, column {column}");
    }
}

#[test]
fn words_that_are_wrong_are_no_panic() {
    let mut translated = 0;
    for (text, kernel) in [(COUNT, "count"), (SHUFFLE, "shuffle"), (DOT, "dot")] {
        let bytes = assembled(text);
        for at in (20..bytes.len()).step_by(4) {
            for by in [1, 3, 0x40] {
                let mut wrong = bytes.clone();
                wrong[at] ^= by;
                translated += u32::from(Program::parse(&wrong).is_ok_and(|p| p.ptx(kernel).is_ok()));
            }
        }
    }
    assert!(translated > 0);
}

#[test]
fn sizes_that_the_hardware_does_not_take_are_reported() {
    for (from, to, message) in [
        ("%sub26 = OpISub %uint %m %uint_1", "%sub26 = OpISub %uint %uint_0 %uint_1", "at most 2^24"),
        ("%sub25 = OpISub %uint %mul24 %uint_1", "%sub25 = OpISub %uint %uint_4 %uint_1", "64 bytes or more"),
        (
            "%sub25 = OpISub %uint %mul24 %uint_1",
            "%sub25 = OpISub %uint %mul24 %uint_2",
            "multiple of 4 bytes",
        ),
        (
            "%sub28 = OpISub %uint %mul27 %uint_1",
            "%sub28 = OpIAdd %uint %mul27 %uint_1",
            "multiple of 16 bytes",
        ),
        (
            "%sub28 = OpISub %uint %mul27 %uint_1",
            "%sub28 = OpISub %uint %mul27 %uint_16",
            "less than its width",
        ),
    ] {
        let p = dot(&with(DOT, from, to));
        assert!(p.found.iter().any(|f| f.message.contains(message)), "{message}: {:#?}", p.found);
    }
}

#[test]
fn a_finding_names_the_source_line() {
    let text = with(ADD, "OpSLessThan", "OpINotEqual");
    let load = text.lines().rfind(|l| l.contains("OpLoad %float")).unwrap();
    let text = with(&text, load, &format!("OpLine %file 12 5\n{load}"));
    let model = text.lines().find(|l| l.contains("OpEntryPoint")).unwrap();
    let mode = text.lines().rfind(|l| l.contains("OpExecutionMode")).unwrap();
    assert_ne!(model, mode);
    let (found, _) = add(&with(&text, mode, &format!("{mode}\n%file = OpString \"add.py\"")));
    let lines: Vec<_> = found.iter().map(|f| f.source.as_ref().map(|s| (s.file.as_str(), s.line))).collect();
    // What stands before it has none.
    assert!(lines.contains(&Some(("add.py", 12))) && lines.contains(&None), "{found:#?}");
}

#[test]
fn a_value_that_nothing_gave_is_reported() {
    let x = ADD.lines().rfind(|l| l.contains("OpFAdd")).unwrap();
    let words: Vec<&str> = x.split_whitespace().collect();
    let undefined = format!("%nothing = OpUndef %float\n{}", x.replace(words[5], "%nothing"));
    let (found, _) = add(&with(ADD, x, &undefined));
    // Where what was computed from it is used.
    assert!(
        found
            .iter()
            .any(|f| f.kind == FindingKind::UninitializedRegister && f.instruction.starts_with("OpStore")),
        "{found:#?}"
    );
}

/// Functions of `OpenCL.std` in fp64 are those of the CPU executor.
#[test]
fn functions_of_the_library() {
    let text = with(ADD, "OpTypeFloat 32", "OpTypeFloat 64");
    let text = with(&text, "OpCapability Int64", "OpCapability Int64\nOpCapability Float64");
    let text = with(&text, "OpFAdd %float %26 %29", "OpExtInst %float %1 atan2 %26 %29")
        .replace("Aligned 4", "Aligned 8");
    let run_with = |text: &str| {
        let mut x: Vec<f64> = (0..100).map(|i| f64::from(i) - 50.5).collect();
        let mut y: Vec<f64> = (0..100).map(|i| 7.0 - 0.3 * f64::from(i)).collect();
        let mut z = vec![0f64; 100];
        let arrays = [bytes(&mut x), bytes(&mut y), bytes(&mut z)];
        assert_eq!(run(text, "add", [4, 1, 1], 32, arrays, &[100]), []);
        (x, y, z)
    };
    let (x, y, z) = run_with(&text);
    for ((x, y), z) in x.iter().zip(&y).zip(z) {
        assert_eq!(z, x.atan2(*y));
    }
    let launch = Launch { kernel: "add".into(), groups: [1; 3], items: 32, params: vec![Param::Int(0); 4] };
    let text = with(&text, "atan2 %26", "maxmag %26");
    let e = program(&text).launch(&launch, &Memory::new(), &SimOptions::default()).err().unwrap();
    assert!(e.message.starts_with("not supported yet: this function"), "{e}");
}

/// A table of the program's is read as global memory is, and not beyond its end.
#[test]
fn tables() {
    let text = with(
        ADD,
        "%__spirv_BuiltInGlobalInvocationId = OpVariable",
        "%c0 = OpConstant %float 2.5\n%c1 = OpConstant %float -1.5\n%n2 = OpConstant %uint 2\n%zero = OpConstant %ulong 0\n\
         %pair = OpTypeArray %float %n2\n%values = OpConstantComposite %pair %c0 %c1\n\
         %_ptr_pair = OpTypePointer CrossWorkgroup %pair\n%table = OpVariable %_ptr_pair CrossWorkgroup %values\n\
         %__spirv_BuiltInGlobalInvocationId = OpVariable",
    );
    let at = |index: &str| {
        let load = format!(
            "%odd = OpBitwiseAnd %uint %conv {index}\n%wide = OpUConvert %ulong %odd\n\
             %place = OpInBoundsAccessChain %_ptr_CrossWorkgroup_float %table %wide\n%29 = OpLoad %float %place Aligned 4"
        );
        let text = with(&text, "%29 = OpLoad %float %arrayidx3 Aligned 4", &load);
        with(
            &text,
            "%n2 = OpConstant %uint 2",
            "%n2 = OpConstant %uint 2\n%n1 = OpConstant %uint 1\n%n3 = OpConstant %uint 3",
        )
    };
    let (found, z) = add(&at("%n1"));
    assert_eq!(found, []);
    assert!(z.iter().enumerate().all(|(i, &z)| z == i as f32 + [2.5, -1.5][i % 2]), "{z:?}");
    let (found, _) = add(&at("%n3"));
    assert_eq!(found[0].kind, FindingKind::GlobalBounds, "{}", found[0]);
}
