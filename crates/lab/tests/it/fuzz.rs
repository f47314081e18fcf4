//! Plans that nobody would write.

use lab::plan::Plan;
use testbed::fuzz::{self, Budget};

#[test]
fn plans() {
    let samples: [&[u8]; 6] = [
        include_bytes!("../../../../plans/remote-recovery.toml"),
        include_bytes!("../../../../plans/follow-while-recovering.toml"),
        include_bytes!("../../../../plans/replica-selection.toml"),
        include_bytes!("../../../../plans/dcp-rebalance.toml"),
        include_bytes!("../../../../plans/stability-restarts.toml"),
        include_bytes!("../../../../plans/restore-over-link.toml"),
    ];
    // A variant of a few bytes is a whole plan of its own once it is resolved.
    let budget = Budget { allocations_per_byte: 400, bytes_per_byte: 5_000, ..Budget::default() };
    fuzz::search("plans", &samples, 5_000, budget, |text| {
        let Ok(text) = std::str::from_utf8(text) else { return };
        if let Ok(plan) = Plan::parse("plan.toml", text) {
            let _ = plan.resolve(1.0, lab::experiments::STEPS, |_, _| Ok(()));
        }
    });
}
