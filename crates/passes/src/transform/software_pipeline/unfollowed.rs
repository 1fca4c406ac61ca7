//! What became of `num_stages` of a loop whose author gave it (`tl.range(…, num_stages=3)`): which of its loads do not run ahead, and why; fewer stages than that.
//!
//! Loads in branches and in loops inside are no loads of the loop's own, and one that only addresses need runs ahead with what it is an address of: there
//! is nothing to say of these.

use tilewright_ir::dialect::scf;
use tilewright_ir::options::MAX_STAGES;
use tilewright_ir::{Module, Op};

use super::candidates::Candidates;
use super::schedule::{self, NUM_STAGES, Schedule};

const NO_ROOM: &str = "there is no room for it in shared memory";

/// What to say, and where.
pub fn of(module: &Module, l: scf::For, schedule: Option<&Schedule>, num_stages: u32) -> Vec<(Op, String)> {
    let Some(asked) = module.int_attr(l.0, NUM_STAGES).filter(|&n| n >= 2) else { return Vec::new() };
    let asked = asked.min(i64::from(MAX_STAGES));
    let ops = schedule::ops_of(module, l);
    let copied = schedule.map_or(Vec::new(), Schedule::loads);
    let ahead = |op: Op| schedule.is_some_and(|s| s.levels.iter().any(|level| level.ops.contains(&op)));
    let left = ops.iter().copied().filter(|&op| schedule::is_load(module, op));
    let left: Vec<Op> = left.filter(|&op| !copied.contains(&op) && !ahead(op)).collect();
    let mut found = Vec::new();
    let stages = schedule.filter(|_| !copied.is_empty()).map(|s| i64::from(s.stages));
    if let Some(stages) = stages.filter(|&stages| stages < asked) {
        let text =
            format!("num_stages={asked} of a loop is {stages}: there is no room for more in shared memory");
        found.push((l.0, text));
    }
    let fits = schedule::stages_of(module, l.0, num_stages) >= 2;
    let candidates = if schedule::is_in_order_of_author(module, l) {
        Err("the kernel itself says when the loop's copies and products begin and end")
    } else {
        Candidates::of(module, l, &ops)
    };
    for op in left {
        let why = match &candidates {
            _ if !fits => Some(NO_ROOM),
            Err(why) => Some(*why),
            Ok(candidates) if !candidates.is_wanted(op) => None,
            Ok(candidates) => Some(candidates.levels(op).err().unwrap_or(NO_ROOM)),
        };
        if let Some(why) = why {
            found.push((
                op,
                format!("num_stages={asked} of the loop does not make this load run ahead: {why}"),
            ));
        }
    }
    found
}
