//! Cores and memory that this scheduler may hand out.
//!
//! The limits of the scheduler's own cgroup and CPU affinity are the pool's: what it may not use itself, it cannot
//! give away. Use by others is not subtracted: cores and memory are counted, not measured.

use crate::model::{Bytes, HostReading};

/// Cores that come with each simulated GPU.
pub const SIMULATED_CORES_PER_GPU: u32 = 16;
/// Memory that comes with each simulated GPU.
pub const SIMULATED_MEMORY_PER_GPU: Bytes = Bytes::gib(128);

/// The host's cores and memory, or those that `simulated_gpus` bring with them.
pub fn host_reading(simulated_gpus: Option<u32>) -> HostReading {
    match simulated_gpus {
        Some(gpus) => HostReading {
            cores: SIMULATED_CORES_PER_GPU.saturating_mul(gpus),
            memory: Bytes(SIMULATED_MEMORY_PER_GPU.0.saturating_mul(u64::from(gpus))),
        },
        None => HostReading { cores: cores(), memory: memory() },
    }
}

/// Affinity and CPU quota are respected by the standard library; one core is always there.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

fn memory() -> Bytes {
    let Ok(mut system) = sysinfo::System::new() else { return kernel_memory() };
    system.refresh_memory_specifics(sysinfo::MemoryRefreshKind::nothing().with_ram());
    // A cgroup without a limit reports an absurdly large one, or none.
    let limit = system.cgroup_limits().map_or(0, |limits| limits.total_memory);
    match system.total_memory() {
        0 => kernel_memory(),
        total if limit == 0 => Bytes(total),
        total => Bytes(total.min(limit)),
    }
}

/// As the kernel counts it, without limits.
fn kernel_memory() -> Bytes {
    let info = rustix::system::sysinfo();
    Bytes((info.totalram as u64).saturating_mul(u64::from(info.mem_unit)))
}

/// The host's name: the node that its devices sit in.
pub fn node_name() -> String {
    crate::model::clean_line(&rustix::system::uname().nodename().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_gpus_bring_their_cores_and_memory() {
        assert_eq!(host_reading(Some(4)), HostReading { cores: 64, memory: Bytes::gib(512) });
    }

    #[test]
    fn the_real_host_has_cores_and_memory_and_no_more_than_the_kernel_says() {
        let reading = host_reading(None);
        assert!(reading.cores >= 1);
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
        let kib: u64 = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .and_then(|n| n.trim().parse().ok())
            .unwrap();
        assert!(reading.memory.0 > Bytes::MIB * 16, "{}", reading.memory);
        assert!(reading.memory.0 <= kib * 1024);
    }
}
