//! Kernels that multiply and compute with vectors: two functions, for the two cores of a block, which hand each other values through the workspace.

mod common;

use common::{Case, check, check_within, compiled, executed, numbers, simulated};

fn case(source: &str, signature: &str, grid: u32, arrays: Vec<Vec<f32>>, numbers: Vec<i64>) -> Case {
    let source = source.trim_start().to_string();
    Case { source, signature: signature.to_string(), grid: [grid, 1, 1], arrays, numbers }
}

const EPILOGUE: &str = "
def kernel(a_ptr, b_ptr, bias, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for first in tl.range(0, K, BK, num_stages=2):
        k = first + tl.arange(0, BK)
        a = tl.load(a_ptr + m * K + k[None, :], (m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n, (k[:, None] < K) & (n < N), other=0.0)
        total = tl.dot(a, b, total, input_precision='ieee')
    total += tl.load(bias + tl.arange(0, BN), tl.arange(0, BN) < N)[None, :]
    tl.store(c_ptr + m * N + n, tl.where(total > 0.0, total, total * 0.5), (m < M) & (n < N))
";

fn epilogue() -> Case {
    let (m, n, k) = (28, 15, 39);
    let arrays = vec![numbers(m * k, 1), numbers(k * n, 2), numbers(n, 3), vec![0.0; m * n]];
    let signature = "*fp32, *fp32, *fp32, *fp32, i32, i32, i32, 16, 16, 16";
    case(EPILOGUE, signature, 2, arrays, vec![m as i64, n as i64, k as i64])
}

#[test]
fn a_product_with_an_epilogue() {
    let (text, report, run) = check(&epilogue());
    for part in [
        "func.func private @kernel(",
        "hacc.mix_entry",
        "func.func @kernel_mix_aic(",
        "func.func @kernel_mix_aiv(",
        "hivm.part_of_mix",
        "#hacc.arg_type<workspace>",
        "func.func @kernel_infer_workspace_shape_function() -> index",
        "hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_MTE2>]",
        "hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_MTE2>]",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(report.contains("PIPE_FIX of the cube core before PIPE_MTE2 of the vector core"), "{report}");
    assert!(run.together > 0, "{run:?}");
}

#[test]
fn vectors_have_two_cores() {
    let (text, report, run) = check(&epilogue());
    let two = "arith.constant 32 : i8";
    assert!(text.contains(two) && text.contains("hivm.hir.get_sub_block_idx"), "{text}");
    assert!(report.contains("vectors: on both vector cores of a block"), "{report}");
    // A product of 16 rows: each has 8.
    assert!(text.contains("memref<8x16xf32, #hivm.address_space<ub>>"), "{text}");
    let busy = |number| run.pipes.iter().any(|p| p.core.keyword() == "VECTOR" && p.number == number);
    assert!(busy(0) && busy(1), "{run:?}");
}

#[test]
fn what_has_no_halves_has_one_vector_core() {
    let source = "
def kernel(a_ptr, at_ptr, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + i * N + j)
    to = tl.load(at_ptr + tl.arange(0, N)).to(tl.int32)
    tl.store(out + to[:, None] * N + j, tl.dot(a, a))
";
    let to = (0..16).map(|i| (i * 7 % 16) as f32).collect();
    let case = case(source, "*fp32, *fp32, *fp32, 16", 1, vec![numbers(256, 1), to, vec![0.0; 256]], vec![]);
    let (text, report, _) = check_within(&case, 0.0);
    assert!(text.contains("arith.constant 31 : i8"), "{text}");
    assert!(
        report.contains("on one vector core of a block: its scalar unit writes to global memory"),
        "{report}"
    );
}

#[test]
fn what_one_vector_core_writes_and_the_other_reads() {
    // Rows are stored, and columns of the same memory are loaded: each core needs what the other one stored.
    let source = "
def kernel(a_ptr, w_ptr, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + i * N + j)
    tl.store(w_ptr + i * N + j, tl.dot(a, a) + 1.0)
    turned = tl.load(w_ptr + j * N + i)
    tl.store(out + i * N + j, turned * 2.0)
";
    let arrays = vec![numbers(256, 1), vec![0.0; 256], vec![0.0; 256]];
    let case = case(source, "*fp32, *fp32, *fp32, 16", 1, arrays, vec![]);
    let (text, report, _) = check(&case);
    assert!(report.contains("the cores wait for each other (line"), "{report}");
    assert!(text.contains("arith.constant 32 : i8"), "{text}");
    // Without the flag of either kind of core.
    for set in
        ["sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>]", "sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>]"]
    {
        assert!(text.contains(set), "{text}");
    }
}

#[test]
fn numbers_of_one_vector_core_that_all_cores_need() {
    let source = "
def kernel(x, a_ptr, out, rounds, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for r in range(rounds):
        far = tl.max(tl.load(x + r * N + tl.arange(0, N)), 0).to(tl.int32)
        total += tl.dot(tl.load(a_ptr + far + i * N + j), tl.load(a_ptr + i * N + j)) * 2.0
    tl.store(out + i * N + j, total)
";
    let mut far = vec![0.0; 48];
    (far[3], far[17], far[47]) = (7.0, 2.0, 11.0);
    let arrays = vec![far, numbers(300, 1), vec![0.0; 256]];
    let (text, report, _) =
        check_within(&case(source, "*fp32, *fp32, *fp32, i32, 16", 1, arrays, vec![3]), 0.0);
    assert!(text.contains("arith.constant 32 : i8"), "{text}");
    assert!(report.contains("the cores wait for each other"), "{report}");
}

#[test]
fn indices_that_begin_again() {
    let source = "
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + (m % M)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        a = tl.load(a_ptrs, k[None, :] < K - first, other=0.0)
        b = tl.load(b_ptrs, k[:, None] < K - first, other=0.0)
        total = tl.dot(a, b, total, input_precision='ieee')
        a_ptrs += BK
        b_ptrs += BK * N
    total += tl.load(a_ptr + (m % M) * K)[:, None]
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, (m[:, None] < M) & (n[None, :] < N))
";
    for (m, n, k) in [(28, 15, 39), (5, 3, 17), (32, 16, 16)] {
        let arrays = vec![numbers(m * k, 1), numbers(k * n, 2), vec![0.0; m * n]];
        let sizes = vec![m as i64, n as i64, k as i64];
        check_within(
            &case(
                source,
                "*fp32, *fp32, *fp32, i32, i32, i32, 16, 16, 16",
                m.div_ceil(16) as u32,
                arrays,
                sizes,
            ),
            0.0,
        );
    }
}

#[test]
fn a_sum_of_no_products() {
    let mut case = epilogue();
    case.numbers[2] = 0;
    let (text, _) = compiled(&case);
    let (found, _) = simulated(&text, &case).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(found, executed(&case), "{text}");
}

const ATTENTION: &str = "
def kernel(Q, K, V, Out, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + m[:, None] * D + d[None, :], m[:, None] < N, other=0.0)
    largest = tl.full((BM,), -1e30, tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in tl.range(0, N, BN, num_stages=STAGES):
        n = first + tl.arange(0, BN)
        k = tl.load(K + n[:, None] * D + d[None, :], n[:, None] < N, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision='ieee') * scale
        s = tl.where(n[None, :] < N, s, -1e30)
        if CAUSAL:
            s = tl.where(n[None, :] <= m[:, None], s, -1e30)
        larger = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        keep = tl.exp(largest - larger)
        weight = weight * keep + tl.sum(p, 1)
        acc = acc * keep[:, None]
        v = tl.load(V + n[:, None] * D + d[None, :], n[:, None] < N, other=0.0)
        acc = tl.dot(p, v, acc, input_precision='ieee')
        largest = larger
    tl.store(Out + m[:, None] * D + d[None, :], acc / weight[:, None], m[:, None] < N)
";

fn attention(stages: u32, causal: bool) -> Case {
    let (n, d) = (40, 16);
    let small = |seed| numbers(n * d, seed).iter().map(|x| x / 16.0).collect::<Vec<f32>>();
    let arrays = vec![small(1), small(2), small(3), vec![0.0; n * d]];
    let causal = if causal { "True" } else { "False" };
    let signature = format!("*fp32, *fp32, *fp32, *fp32, i32, 0.25, 16, 16, {d}, {causal}");
    case(&ATTENTION.replace("STAGES", &stages.to_string()), &signature, 3, arrays, vec![n as i64])
}

#[test]
fn attention_is_right_and_every_flag_of_it_is_needed() {
    let (text, report, run) = check_within(&attention(1, false), 1e-5);
    assert!(text.contains("sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_MTE2>]"), "{text}");
    assert!(text.contains("b_transpose"), "{text}");
    assert!(report.contains("workspace: "), "{report}");
    let cores: Vec<_> = run.pipes.iter().map(|p| p.core.keyword()).collect();
    assert!(cores.contains(&"CUBE") && cores.contains(&"VECTOR"), "{run:?}");
}

#[test]
fn attention_with_several_stages_and_a_mask() {
    let (one, two) = (check_within(&attention(1, true), 1e-5).2, check_within(&attention(2, true), 1e-5).2);
    assert!(two.time < one.time && two.together > 0, "{one:?}\n{two:?}");
}

#[test]
fn attention_in_named_buffers_overlaps() {
    let source = "
def at(ptr, first, M: tl.constexpr, N: tl.constexpr):
    return ptr + (first + tl.arange(0, M))[:, None] * N + tl.arange(0, N)[None, :]


@tilewright.jit
def kernel(Q, K, V, Out, N, scale, B: tl.constexpr, D: tl.constexpr):
    q = tle.dsa.alloc([B, D], tl.float32, tle.dsa.ascend.L1)
    tle.dsa.copy(at(Q, 0, B, D), q, [B, D])
    weight = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    with tle.dsa.hint(inter_no_alias=True):
        for first in tle.dsa.pipeline(0, N, B, num_stages=2):
            k = tle.dsa.alloc([B, D], tl.float32, tle.dsa.ascend.L1)
            v = tle.dsa.alloc([B, D], tl.float32, tle.dsa.ascend.L1)
            tle.dsa.copy(at(K, first, B, D), k, [B, D])
            tle.dsa.copy(at(V, first, B, D), v, [B, D])
            s = tl.dot(tle.dsa.to_tensor(q), tl.trans(tle.dsa.to_tensor(k)), input_precision='ieee') * scale
            p = tl.exp(s)
            weight += tl.sum(p, 1)
            held = tle.dsa.to_buffer(p, tle.dsa.ascend.L1)
            acc += tl.dot(tle.dsa.to_tensor(held), tle.dsa.to_tensor(v), input_precision='ieee')
        out = tle.dsa.to_buffer(acc / weight[:, None], UB)
        tle.dsa.copy(out, at(Out, 0, B, D), [B, D])
";
    let small = |n: usize, seed| numbers(n, seed).iter().map(|x| x / 16.0).collect::<Vec<f32>>();
    let arrays = vec![small(256, 1), small(1024, 2), small(1024, 3), vec![0.0; 256]];
    let (text, report, run) = check_within(
        &case(source, "*fp32, *fp32, *fp32, *fp32, i32, 0.25, 16, 16", 1, arrays, vec![64]),
        1e-5,
    );
    assert!(report.contains("k, 2 of 1024 bytes") && report.contains("v, 2 of 1024 bytes"), "{report}");
    assert!(run.together * 4 > run.time, "{run:?}\n{text}");
}

#[test]
fn what_the_cores_report() {
    let case = epilogue();
    let (text, _) = compiled(&case);
    let without = |what: &str| {
        let line = text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}\n{text}"));
        simulated(&text.replacen(&format!("{line}\n"), "", 1), &case).expect_err(what)
    };
    let wait = without("sync_block_wait[<VECTOR>, <PIPE_FIX>");
    let apart =
        "PIPE_MTE2 of the vector core reads byte 0 of GM while PIPE_FIX of the cube core still writes it";
    assert!(wait.contains(apart), "{wait}");
    let set = without("sync_block_set[<CUBE>, <PIPE_FIX>");
    assert!(set.contains("deadlock: PIPE_MTE2 of the vector core waits for flag 0 of PIPE_FIX of the cube core, which nobody raises"), "{set}");
}

#[test]
fn numbers_that_vectors_compute_reach_products() {
    let source = "
def kernel(x, a_ptr, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    far = tl.max(tl.load(x + tl.arange(0, N)), 0).to(tl.int32)
    a = tl.load(a_ptr + far + i * N + j)
    tl.store(out + i * N + j, tl.dot(a, a))
";
    let mut far = vec![0.0; 16];
    far[3] = 7.0;
    let case = case(source, "*fp32, *fp32, *fp32, 16", 1, vec![far, numbers(300, 1), vec![0.0; 256]], vec![]);
    let (text, _, _) = check(&case);
    // By way of the workspace, where both cores read it.
    assert!(text.contains("sync_block_wait[<CUBE>, <PIPE_MTE3>, <PIPE_S>"), "{text}");
}

#[test]
fn accesses_of_two_cores_without_a_flag() {
    const GM: &str = "memref<16xf32, #hivm.address_space<gm>>";
    let part = |name: &str, core: &str, body: &str| {
        format!(
            "func.func @f_mix_{name}(%w: memref<?xi8, #hivm.address_space<gm>> {{hacc.arg_type = #hacc.arg_type<workspace>}}, %gx: i32, %gy: i32, %gz: i32) attributes {{hivm.func_core_type = #hivm.func_core_type<{core}>, hivm.part_of_mix}} {{
               %a0 = arith.constant 0 : i64
               %c0 = arith.constant 0 : index
               %c16 = arith.constant 16 : index
               %true = arith.constant true
               %shared = memref.view %w[%c0][] : memref<?xi8, #hivm.address_space<gm>> to {GM}
               {body}
               func.return
             }}\n"
        )
    };
    let head = "func.func private @f(memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, i32, i32, i32) attributes {hacc.mix_entry}
         func.func @f_infer_workspace_shape_function() -> index {
           %n = arith.constant 64 : index
           func.return %n : index
         }
         func.func @f_infer_task_type_function() -> i8 {
           %n = arith.constant 31 : i8
           func.return %n : i8
         }\n";
    let load = format!(
        "%u = hivm.hir.pointer_cast(%a0) : memref<16xf32, #hivm.address_space<ub>>
         hivm.hir.load ins(%shared : {GM}) outs(%u : memref<16xf32, #hivm.address_space<ub>>)"
    );
    let copy = format!(
        "%l = hivm.hir.pointer_cast(%a0) : memref<16xf32, #hivm.address_space<cbuf>>
         hivm.hir.nd2nz ins(%shared : {GM}) outs(%l : memref<16xf32, #hivm.address_space<cbuf>>)"
    );
    let store = format!(
        "{load}\nhivm.hir.pipe_barrier[<PIPE_ALL>]\nhivm.hir.store ins(%u : memref<16xf32, #hivm.address_space<ub>>) outs(%shared : {GM})"
    );
    let error = |cube: &str, vector: &str| {
        let text = format!("{head}{}{}", part("aic", "AIC", cube), part("aiv", "AIV", vector));
        let mut module = tilewright_ir::parse(&text, "f.hivm").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut launch = tilewright_npusim::Launch { memory: vec![], args: vec![], grid: [1, 1, 1] };
        let ran = tilewright_npusim::run(&mut module, "f", &mut launch);
        assert!(launch.memory.is_empty(), "the workspace is gone again");
        ran.err().map_or(String::new(), |e| e.to_string())
    };
    let both = error(&copy, &store);
    assert!(
        both.contains(
            "of the cube core reads byte 0 of GM while PIPE_MTE3 of the vector core still writes it"
        ) || both.contains(
            "PIPE_MTE3 of the vector core writes byte 0 of GM while PIPE_MTE2 of the cube core still reads it"
        ),
        "{both}"
    );
    assert!(both.contains("a flag (hivm.hir.sync_block_set, sync_block_wait) from"), "{both}");
    assert_eq!(error(&copy, &load), "", "both read");
    let wrong = error(&load, "");
    assert!(wrong.contains("UB, which the cube core has not"), "{wrong}");
    let set = "hivm.hir.sync_block_set[<CUBE>, <PIPE_MTE2>, <PIPE_MTE2>] flag = 0";
    let twice = error(&format!("{set}\n{set}"), "");
    assert!(twice.contains("flag 0 from PIPE_MTE2 of the cube core to PIPE_MTE2 of the vector core is raised again before it was waited for"), "{twice}");
    let stray = error(&set.replace("CUBE", "VECTOR"), "");
    assert!(stray.contains("a flag of the vector core, in a function that does not run on it"), "{stray}");
}
