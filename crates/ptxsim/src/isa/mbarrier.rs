//! mbarrier objects (§9.7.13.15).

use super::Dec;
use crate::Error;

type R = Result<(), Error>;

/// mbarriers that have waits outstanding.
#[derive(Default)]
pub(crate) struct MbarTable;

macro_rules! later {
    ($($n:ident)*) => { $(pub(super) fn $n(d: &mut Dec) -> R { d.fail("not supported yet") })* };
}
later!(init inval expect_tx complete_tx arrive arrive_drop test_wait try_wait pending_count cp_async_arrive);
