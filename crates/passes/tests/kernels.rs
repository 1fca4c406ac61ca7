//! Whole kernels through the pipeline: what each must look like for the lowering to be right and fast.

mod common;

use tilewright_ir::{Module, parse, print};
use tilewright_passes::{Options, TargetInfo, lower_to_ttg, verify};

const ADD: &str = include_str!("ir/add.mlir");
const SOFTMAX: &str = include_str!("ir/softmax.mlir");
const MATMUL: &str = include_str!("ir/matmul.mlir");
const MATMUL_ODD: &str = include_str!("ir/matmul_odd.mlir");
const ATTENTION: &str = include_str!("ir/attention.mlir");

fn lower_for(text: &str, num_warps: u32, num_stages: u32, target: &str) -> Module {
    let mut module = parse(text, "kernel.mlir").unwrap_or_else(|d| panic!("{d}"));
    let target = common::plain(target);
    lower_to_ttg(&mut module, &target, &Options { num_warps, num_ctas: 1, num_stages, ..Options::default() })
        .unwrap_or_else(|d| panic!("{d}"));
    verify::run(&module).unwrap_or_else(|d| panic!("{d}"));
    module
}

fn lower(text: &str, num_warps: u32, num_stages: u32) -> String {
    print(&lower_for(text, num_warps, num_stages, "cuda:90"))
}

/// The text of the only loop's body, and of everything else.
fn split_loop(text: &str) -> (String, String) {
    let begin = text.find("scf.for").expect("a loop");
    let end = begin + text[begin..].find("\n    }").expect("its end");
    (text[begin..end].to_string(), format!("{}{}", &text[..begin], &text[end..]))
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn contract_holds_for_all_shapes_of_launch() {
    for text in [ADD, SOFTMAX, MATMUL, MATMUL_ODD, ATTENTION] {
        for warps in [1, 2, 4, 8, 16] {
            for stages in [1, 2, 3] {
                let text = lower(text, warps, stages);
                // The text can be read back: nothing is left that has no spelling.
                parse(&text, "lowered.mlir").unwrap_or_else(|d| panic!("{d}"));
            }
        }
    }
}

#[test]
fn vector_add_takes_16_bytes_at_once() {
    let text = lower(ADD, 4, 3);
    assert_eq!(count(&text, "tt.vec = 4"), 3, "{text}");
    assert_eq!(count(&text, "convert_layout") + count(&text, "ttg.barrier"), 0, "{text}");
    assert!(text.contains("ttg.shared = 0"), "{text}");
}

#[test]
fn small_scratch_is_not_shared_and_needs_no_barrier() {
    let text = lower(SOFTMAX, 4, 3);
    assert_eq!(count(&text, "allocation.offset = 0 "), 1, "{text}");
    assert_eq!(count(&text, "allocation.offset = 128 "), 1, "{text}");
    assert_eq!(count(&text, "ttg.barrier"), 0, "{text}");
    // One warp needs neither.
    let text = lower(SOFTMAX, 1, 3);
    assert_eq!(count(&text, "allocation.offset") + count(&text, "ttg.barrier"), 0, "{text}");
}

#[test]
fn matmul_loop_is_copies_one_barrier_and_the_dot() {
    let text = lower(MATMUL, 8, 4);
    let (body, rest) = split_loop(&text);
    assert_eq!(count(&body, "ttg.barrier"), 1, "{body}");
    assert_eq!(count(&body, "ttg.async_wait {num = 2 : i32}"), 1, "{body}");
    assert_eq!(count(&body, "ttg.async_copy_global_to_local"), 2, "{body}");
    assert_eq!(count(&body, "tt.vec = 8"), 2, "{body}");
    assert_eq!(count(&body, "ttg.local_load"), 2, "{body}");
    assert_eq!(
        count(&body, "tt.load") + count(&body, "convert_layout") + count(&body, "local_alloc"),
        0,
        "{body}"
    );
    // The barrier comes after the wait and before the copies overwrite what the iteration before has read.
    let at = |what: &str| body.find(what).unwrap();
    assert!(at("ttg.async_wait") < at("ttg.barrier") && at("ttg.barrier") < at("ttg.async_copy"));
    assert!(at("ttg.async_commit_group") < at("ttg.local_load"));
    assert_eq!(count(&rest, "ttg.async_copy_global_to_local"), 6, "three iterations ahead: {rest}");
    assert_eq!(count(&rest, "memdesc<4x128x64xf16"), 1 + 3, "{rest}");
    // The result goes through shared memory once, to be stored in 16-byte pieces.
    assert_eq!(count(&rest, "convert_layout"), 1, "{rest}");
    let store = rest.lines().find(|l| l.contains("tt.store")).unwrap();
    assert!(store.contains("tt.vec = 8") && store.contains("#blocked"), "{store}");
    assert!(text.contains("warpsPerCTA = [4, 2], instrShape = [16, 8]"), "{text}");
}

#[test]
fn without_stages_operands_still_go_through_shared_memory() {
    let (body, _) = split_loop(&lower(MATMUL, 4, 1));
    assert_eq!(count(&body, "tt.load"), 2, "{body}");
    assert_eq!(count(&body, "ttg.local_alloc"), 2, "{body}");
    assert_eq!(
        count(&body, "ttg.barrier"),
        2,
        "after both are written, before they are written again: {body}"
    );
}

#[test]
fn attention_keeps_scores_in_registers() {
    let text = lower(ATTENTION, 8, 3);
    assert!(text.contains("warpsPerCTA = [8, 1], instrShape = [16, 8]"), "{text}");
    let (body, rest) = split_loop(&text);
    assert_eq!(count(&body, "ttg.barrier"), 1, "{body}");
    assert_eq!(count(&body, "ttg.async_copy_global_to_local"), 2, "{body}");
    assert_eq!(count(&body, "ttg.memdesc_trans"), 1, "{body}");
    assert_eq!(count(&body, "allocation.offset"), 0, "{body}");
    // P becomes an operand where it is.
    let convert = body.lines().find(|l| l.contains("convert_layout")).expect("P as an operand");
    assert!(convert.contains("opIdx = 0"), "{convert}");
    assert_eq!(count(&body, "convert_layout"), 1, "{body}");
    // Q is read once, before the loop.
    assert_eq!(count(&rest, "ttg.local_load"), 1, "{rest}");
    // What was carried only to compute addresses is carried once.
    assert_eq!(body.lines().next().unwrap().matches(" = %").count(), 8, "{}", body.lines().next().unwrap());
}

#[test]
fn odd_tiles_divide_where_they_can() {
    let text = lower(MATMUL_ODD, 4, 3);
    assert!(text.contains("memdesc<3x96x48xf16"), "{text}");
    assert!(
        text.contains("warpsPerCTA = [2, 2], instrShape = [16, 8]"),
        "96 x 80 = 3 x 5 units of 32 x 16: {text}"
    );
}

#[test]
fn too_much_shared_memory_names_what_takes_it() {
    let mut module = parse(MATMUL, "kernel.mlir").unwrap();
    let target = TargetInfo { max_shared: 24 * 1024, ..common::plain("cuda:86") };
    let options = Options { num_warps: 4, num_ctas: 1, num_stages: 2, ..Options::default() };
    let error = lower_to_ttg(&mut module, &target, &options).expect_err("32 KiB on 24").to_string();
    for part in [
        "needs 32768 bytes",
        "cuda:86 has 24576",
        "32768 bytes: scratch of ttg.convert_layout",
        "kernel.mlir:",
    ] {
        assert!(error.contains(part), "no `{part}` in\n{error}");
    }
}

#[test]
fn rings_have_as_many_slots_as_there_is_room_for() {
    let mut module = parse(MATMUL, "kernel.mlir").unwrap();
    let target = common::plain("cuda:86");
    lower_to_ttg(
        &mut module,
        &target,
        &Options { num_warps: 4, num_ctas: 1, num_stages: 4, ..Options::default() },
    )
    .unwrap();
    assert!(print(&module).contains("memdesc<3x128x64xf16"), "128 KiB on 99: {}", print(&module));
    // Two slots take 64 KiB.
    let mut module = parse(MATMUL, "kernel.mlir").unwrap();
    let target = TargetInfo { max_shared: 48 * 1024, ..target };
    let options = Options { num_warps: 4, num_ctas: 1, num_stages: 2, ..Options::default() };
    lower_to_ttg(&mut module, &target, &options).unwrap();
    assert!(!print(&module).contains("async_copy"), "{}", print(&module));
}

#[test]
fn wrong_options_are_errors() {
    let target = common::plain("cuda:90");
    for (num_warps, num_ctas) in [(3, 1), (64, 1), (4, 3), (4, 16)] {
        let mut module = parse(ADD, "kernel.mlir").unwrap();
        assert!(
            lower_to_ttg(
                &mut module,
                &target,
                &Options { num_warps, num_ctas, num_stages: 3, ..Options::default() }
            )
            .is_err()
        );
    }
}

#[test]
fn a_list_that_lacks_what_a_pass_requires_is_refused() {
    let without = [
        (
            "lower-rings",
            "lists async-loads where no pass before it has ensured that there are no rings any more",
        ),
        // Nothing but the lowering relies on it.
        (
            "global-barriers",
            "the passes of cuda:90 do not ensure that barriers stand before writes of global memory",
        ),
    ];
    for (pass, said) in without {
        let mut target = common::plain("cuda:90");
        let rest = target.passes.iter().copied().filter(|row| row.pass.name != pass);
        target.passes = Vec::leak(rest.collect());
        let mut module = parse(ADD, "kernel.mlir").unwrap();
        let lowered = lower_to_ttg(&mut module, &target, &Options::default());
        let error = lowered.expect_err("a pass is missing").to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn fp32_dots_without_tf32_are_multiply_adds() {
    let text = lower(include_str!("ir/matmul_f32.mlir"), 4, 2);
    assert!(!text.contains("nvidia_mma"), "{text}");
    assert!(text.contains("opIdx = 1, parent = #blocked"), "{text}");
}

#[test]
fn tf32x3_splits_operand_fragments() {
    let text = lower(include_str!("ir/dot_tf32x3.mlir"), 4, 2);
    let (body, _) = split_loop(&text);
    assert_eq!(count(&body, "tt.dot "), 3, "{body}");
    // Each operand is copied and read once; the parts are computed from the fragments.
    assert_eq!(count(&body, "ttg.async_copy_global_to_local"), 2, "{body}");
    assert_eq!(count(&body, "ttg.local_load"), 2, "{body}");
    assert_eq!(count(&body, "convert_layout") + count(&body, "local_alloc"), 0, "{body}");
}

#[test]
fn fp8_is_widened_where_there_is_no_instruction() {
    let text =
        MATMUL.replace("f16", "f8E4M3FN").replace("arith.truncf %r#0", "tt.fp_to_fp %r#0, rounding = rtne");
    let text = text.replace(
        "tensor<128x128xf32> to tensor<128x128xf8E4M3FN>",
        "tensor<128x128xf32> -> tensor<128x128xf8E4M3FN>",
    );
    let print_for = |target| print(&lower_for(&text, 4, 2, target));
    let (ada, _) = split_loop(&print_for("cuda:89"));
    assert!(ada.contains("128x64xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>"), "{ada}");
    let (ampere, _) = split_loop(&print_for("cuda:80"));
    // One byte an element through shared memory, widened on the fragments.
    assert!(ampere.contains("memdesc<2x128x64xf8E4M3FN"), "{ampere}");
    assert!(
        ampere.contains("-> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>"),
        "{ampere}"
    );
}

#[test]
fn indices_are_loaded_an_iteration_before_the_copies() {
    let text = lower(include_str!("ir/paged.mlir"), 8, 3);
    let (body, rest) = split_loop(&text);
    assert_eq!(count(&body, "ttg.async_copy_global_to_local"), 2, "{body}");
    assert_eq!(count(&body, "tt.load"), 1, "{body}");
    // The address of the copy comes from the iteration before, so that nothing waits for the index.
    let load = body.find("tt.load").unwrap();
    assert!(body.rfind("ttg.async_commit_group").unwrap() < load, "{body}");
    assert_eq!(count(&rest, "tt.load"), 3, "iterations 0, 1 and 2: {rest}");
}

#[test]
fn a_loop_that_waits_for_others_is_not_reordered() {
    let text = MATMUL.replace(
        "      %d = tt.dot",
        "      %lock = tt.int_to_ptr %rem64 : i64 -> !tt.ptr<i32>\n      %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32\n      %d = tt.dot",
    );
    let text = text.replace("      %rem0 =", "      %rem64 = arith.extsi %rem : i32 to i64\n      %rem0 =");
    let (body, _) = split_loop(&lower(&text, 4, 3));
    assert_eq!(count(&body, "ttg.async_copy_global_to_local"), 0, "{body}");
}
