//! What is billed, as `overnight meter` tells it.

use super::support::sandbox::Sandbox;
use serde_json::Value;

/// GPU-milliseconds and those of them that are waived: every cut of the ledger has the same sums.
pub(crate) fn sums(sandbox: &Sandbox) -> (u64, u64) {
    let sums = |by: &str| {
        let table = sandbox.run(&["meter", "--by", by, "--json"]).json();
        let rows: &Vec<Value> = table["rows"].as_array().unwrap();
        let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
        (sum("gpu_ms"), sum("waived_gpu_ms"))
    };
    let all = sums("job");
    for by in ["user", "project", "gpu", "day"] {
        assert_eq!(sums(by), all, "by {by}");
    }
    sandbox.run(&["meter", "--check"]).ok();
    all
}
