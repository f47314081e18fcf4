//! The machine a run takes place on.

use record::Machine;

/// What is known of this machine; empty and zero where the system does not say.
pub(crate) fn describe() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let release = read("/proc/sys/kernel/osrelease");
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Machine {
        os: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned(),
        cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: memory_kib.unwrap_or(0) * 1024,
    }
}
