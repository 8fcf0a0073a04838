//! Whether the pool can ever satisfy a request.

use super::findings::error;
use super::reader::{Fields, Reader};
use super::tree::Mark;
use crate::model::{Amount, Bytes, Request, memory_fits, model_matches};
use crate::protocol::PoolFacts;

/// Refuses what the pool can never satisfy, saying what the pool has.
pub(super) fn check(r: &mut Reader<'_, '_>, request: &Request, fields: &Fields<'_>) {
    let Some(pool) = r.cx.pool.filter(|pool| pool.known) else { return };
    let mark = |name: &'static str| fields.get(name).map_or_else(Mark::default, |field| field.value.mark);
    gpus(r, request, pool, &mark);
    if let Some(Amount::Some(cpus)) = request.cpus
        && cpus > pool.cores
    {
        r.add(
            error(102, mark("cpus"), format!("no host with {cpus} cores: the pool has {}", pool.cores))
                .hint(format!("at most `cpus: {}`, or `cpus: all`", pool.cores)),
        );
    }
    if let Some(Amount::Some(memory)) = request.memory
        && memory > pool.memory
    {
        r.add(
            error(
                102,
                mark("memory"),
                format!("no host with {memory} of memory: the pool has {}", pool.memory),
            )
            .hint("less, or `memory: all`"),
        );
    }
}

fn gpus(r: &mut Reader<'_, '_>, request: &Request, pool: &PoolFacts, mark: &dyn Fn(&'static str) -> Mark) {
    let has = pool.gpus.len();
    let wanted = match request.gpus {
        Amount::Some(0) => return,
        Amount::Some(n) => n as usize,
        Amount::All => 1,
    };
    let given = if r.cx.overrides.gpus.is_some() { Mark::default() } else { mark("gpus") };
    if has == 0 {
        r.add(error(12, given, "no host with a GPU: the pool has none").hint("`gpus: 0` is CPU-only"));
        return;
    }
    if wanted > has {
        r.add(
            error(12, given, format!("no host with {wanted} GPUs: the pool has {has}"))
                .hint(format!("at most `gpus: {has}`, or `gpus: all`")),
        );
    }
    let model = |name: &str| {
        request.gpu_model.is_empty() || request.gpu_model.iter().any(|word| model_matches(name, word))
    };
    let memory = |card: Bytes| request.gpu_memory.is_none_or(|asked| memory_fits(card, asked));
    if !pool.gpus.iter().any(|(name, _)| model(name)) {
        r.add(
            error(13, mark("gpu_model"), "no such GPU in the pool").hint(format!("it has {}", models(pool))),
        );
        return;
    }
    if let Some(asked) = request.gpu_memory
        && !pool.gpus.iter().any(|(_, card)| memory(*card))
    {
        let largest = pool.gpus.iter().map(|(_, card)| *card).max().unwrap_or_default();
        r.add(error(14, mark("gpu_memory"), format!("no GPU has {asked}")).hint(format!(
            "the largest has {} GB ({} MiB)",
            vendor_gb(largest),
            largest.0 / Bytes::MIB
        )));
        return;
    }
    let fit = pool.gpus.iter().filter(|(name, card)| model(name) && memory(*card)).count();
    if fit < wanted && wanted <= has {
        r.add(
            error(12, given, format!("no host with {wanted} such GPUs: {fit} of the pool's {has} fit"))
                .hint(format!("it has {}", models(pool))),
        );
    }
}

/// `4 x "NVIDIA A100 80GB PCIe", 2 x "NVIDIA L4"`.
fn models(pool: &PoolFacts) -> String {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for (name, _) in &pool.gpus {
        match groups.iter_mut().find(|(other, _)| other == name) {
            Some((_, n)) => *n += 1,
            None => groups.push((name, 1)),
        }
    }
    groups.iter().map(|(name, n)| format!("{n} x \"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// What the vendor calls it: 81559 MiB are 80 GB.
fn vendor_gb(card: Bytes) -> u64 {
    let gib = card.0 as f64 / Bytes::GIB as f64;
    // The driver keeps a part, so the round figure lies just above what it reports.
    [
        4.0, 6.0, 8.0, 10.0, 11.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0, 64.0, 80.0, 94.0, 96.0, 141.0,
        180.0, 192.0,
    ]
    .into_iter()
    .find(|size: &f64| *size >= gib && *size * 0.93 <= gib)
    .unwrap_or_else(|| gib.round()) as u64
}
