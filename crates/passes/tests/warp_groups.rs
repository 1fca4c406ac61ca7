//! Kernels whose dots become warp-group dots: where these are issued and waited for.

mod common;

use tilewright_ir::{parse, print};
use tilewright_passes::{Options, lower_to_ttg, verify};

const MATMUL: &str = include_str!("ir/matmul.mlir");
const MATMUL_ODD: &str = include_str!("ir/matmul_odd.mlir");
const ATTENTION: &str = include_str!("ir/attention.mlir");
/// 64 rows and 8 warps; keys and values are gathered through indices.
const SPARSE: &str = include_str!("ir/sparse_attention.mlir");

fn lower(text: &str, num_warps: u32, num_stages: u32) -> String {
    let mut module = parse(text, "kernel.mlir").unwrap_or_else(|d| panic!("{d}"));
    let mut target = common::plain("cuda:90");
    target.dots.wgmma = true;
    lower_to_ttg(&mut module, &target, &Options { num_warps, num_ctas: 1, num_stages, ..Options::default() })
        .unwrap_or_else(|d| panic!("{d}"));
    verify::run(&module).unwrap_or_else(|d| panic!("{d}"));
    print(&module)
}

/// The text of the only loop's body, and of what follows it.
fn split_loop(text: &str) -> (&str, &str) {
    let begin = text.find("scf.for").expect("a loop");
    let end = begin + text[begin..].find("scf.yield").expect("its end");
    (&text[begin..end], &text[end..])
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

fn in_order(text: &str, what: &[&str]) {
    let mut at = 0;
    for w in what {
        at += text[at..].find(w).unwrap_or_else(|| panic!("no `{w}` in its place:\n{text}"));
    }
}

#[test]
fn contract_holds_for_all_shapes_of_launch() {
    for text in [MATMUL, MATMUL_ODD, ATTENTION, SPARSE] {
        for warps in [4, 8, 16] {
            for stages in [1, 2, 3, 4] {
                let text = lower(text, warps, stages);
                parse(&text, "lowered.mlir").unwrap_or_else(|d| panic!("{d}"));
            }
        }
    }
}

#[test]
fn a_matmul_keeps_one_dot_under_way() {
    let text = lower(MATMUL, 4, 3);
    let (body, after) = split_loop(&text);
    // The copies that refill the slot of the dot before come behind the wait for it, and a barrier.
    in_order(
        body,
        &[
            "ttg.async_wait",
            "ttng.fence_async_shared",
            "ttg.barrier",
            "ttng.warp_group_dot ",
            "pendings = 1",
            "ttg.barrier",
            "ttg.async_copy_global_to_local",
        ],
    );
    assert_eq!(count(body, "ttng.warp_group_dot_wait"), 1, "{body}");
    assert_eq!(count(body, "local_load") + count(body, "local_alloc"), 0, "{body}");
    assert!(after.contains("pendings = 0"), "{after}");
}

#[test]
fn a_matmul_of_four_stages_has_one_barrier() {
    // 256×256×32: its copies take half as long as its dot.
    let text = lower(&MATMUL.replace("128", "256").replace("64", "32").replace("63", "31"), 8, 4);
    let (body, _) = split_loop(&text);
    // The wait for what the next iteration reads leaves one iteration's copies under way.
    in_order(
        body,
        &[
            "ttng.warp_group_dot ",
            "pendings = 1",
            "ttg.async_wait {num = 1",
            "ttng.fence_async_shared",
            "ttg.barrier",
            "ttg.async_copy_global_to_local",
        ],
    );
    assert_eq!(count(body, "ttg.barrier"), 1, "{body}");
    assert_eq!(count(body, "ttng.fence_async_shared"), 1, "{body}");
}

#[test]
fn copies_that_bound_a_matmul_are_under_way_in_all_slots_but_one() {
    // 128×128×64: its copies take as long as its dot.
    let text = lower(MATMUL, 4, 4);
    let (body, _) = split_loop(&text);
    in_order(
        body,
        &[
            "ttg.async_wait {num = 2",
            "ttng.fence_async_shared",
            "ttg.barrier",
            "ttng.warp_group_dot ",
            "pendings = 1",
            "ttg.barrier",
            "ttg.async_copy_global_to_local",
        ],
    );
    assert_eq!(count(body, "ttg.barrier"), 2, "{body}");
}

#[test]
fn a_fourth_stage_is_taken_where_it_costs_nothing() {
    // 48 KiB a stage: one CTA on an SM, with three as with four.
    let text = lower(&MATMUL.replace("64", "96"), 8, 3);
    assert!(text.contains("memdesc<4x128x96xf16"), "{text}");
    // 32 KiB: with three stages there is room for two CTAs.
    let text = lower(MATMUL, 8, 3);
    assert!(text.contains("memdesc<3x128x64xf16"), "{text}");
}

#[test]
fn attention_takes_probabilities_from_registers() {
    let text = lower(ATTENTION, 4, 3);
    let (body, _) = split_loop(&text);
    assert_eq!(count(body, "ttng.warp_group_dot "), 2, "{body}");
    assert_eq!(count(body, "local_alloc") + count(body, "local_load"), 0, "{body}");
    assert_eq!(count(body, "ttg.barrier"), 1, "{body}");
}

#[test]
fn warp_groups_side_by_side_compute_whole_rows_of_the_probabilities() {
    let text = lower(SPARSE, 8, 2);
    let (body, _) = split_loop(&text);
    assert_eq!(count(body, "ttng.warp_group_dot "), 3, "{body}");
    // Nothing crosses shared memory but the copies: no scores, no pointers, no indices.
    assert_eq!(
        count(body, "local_alloc") + count(body, "local_load") + count(body, "allocation.offset"),
        0,
        "{body}"
    );
    // The indices for two shapes of rows, and for the mask.
    assert_eq!(count(body, "tt.load"), 3, "{body}");
}

#[test]
fn copies_with_one_iterations_time_do_not_wait_for_its_first_dot() {
    let text = lower(SPARSE, 8, 2);
    let (body, _) = split_loop(&text);
    in_order(
        body,
        &[
            "ttg.async_wait",
            "ttng.warp_group_dot_wait",
            "ttg.barrier",
            "ttng.warp_group_dot ",
            "ttg.async_copy_global_to_local",
            "ttng.warp_group_dot_wait",
        ],
    );
    assert_eq!(count(body, "ttg.barrier"), 1, "{body}");
}

#[test]
fn warp_groups_of_attention_need_not_go_in_step() {
    for (stages, copies_first) in [(3, false), (2, true)] {
        let text = lower(ATTENTION, 8, stages);
        let (body, after) = split_loop(&text);
        assert_eq!(count(body, "ttg.barrier"), 0, "{body}");
        let copies = "ttg.async_copy_global_to_local";
        let mut order =
            vec!["ttng.wait_barrier", "ttng.warp_group_dot ", "ttg.async_wait", "ttng.arrive_barrier"];
        order.insert(if copies_first { 1 } else { order.len() }, copies);
        in_order(body, &order);
        in_order(after, &["ttg.barrier", "ttng.inval_barrier"]);
        // A slot more than stages.
        assert!(text.contains(&format!("!ttg.memdesc<{}x64x128xf16", stages + 1)), "{text}");
    }
}

#[test]
fn dots_of_few_warps_or_rows_stay_with_single_warps() {
    assert_eq!(count(&lower(MATMUL, 2, 3), "ttng."), 0);
    assert_eq!(count(&lower(MATMUL_ODD, 16, 3), "ttng.warp_group_dot "), 0);
}
