//! A node in numbers, as `_nodes/stats` shows them.

use std::time::Duration;

use serde_json::{Value, json};

use super::disk_usage;
use super::parts::Node;
use crate::shard::stats_json;
use crate::transport::ViewHolder;

impl Node {
    /// This node's part of `_nodes/stats`, with the sums over its copies or without.
    pub(crate) fn stats(&self, copies: bool) -> Value {
        let (core, parts) = (self.core(), &*self.parts);
        let net = core.env.net_bytes();
        let cpu: Duration = core.env.cpu_time();
        let throttle = core.throttles.waited.get();
        let (pool, searches) = (parts.search.pool.stats(), &parts.search.counters);
        let never = json!({ "collection_count": 0, "collection_time_in_millis": 0 });
        let mut stats = json!({
            "name": core.config.name,
            "transport_address": core.row.transport,
            "http_address": core.row.http,
            "roles": ["data", "master"],
            "timestamp": core.env.epoch_ms(),
            "indices": {
                "search": {
                    "open_contexts": parts.search.contexts.count(),
                    "query_total": searches.queries.get(),
                    "query_time_in_millis": searches.query_time.get().as_millis() as u64,
                    "query_current": pool.active,
                    "scroll_current": parts.search.contexts.of(ViewHolder::Scroll),
                    "point_in_time_current": parts.search.contexts.of(ViewHolder::PointInTime),
                    "fetch_total": searches.fetches.get(),
                },
                "recovery": {
                    "current_as_source": parts.recovery.sessions.count(),
                    "current_as_target": parts.recovery.going_on(),
                    "throttle_time_in_millis": throttle.as_millis() as u64,
                },
            },
            "thread_pool": { "search": {
                "threads": pool.size,
                "queue": pool.queue,
                "queue_size": pool.queue_size,
                "active": pool.active,
                "rejected": pool.rejected,
                "largest": pool.largest,
                "completed": pool.completed,
            } },
            "narrows": { "following": {
                "memory_size_in_bytes": parts.follow_tasks.memory_bytes(),
                "memory_max_in_bytes": core.settings().following_memory_max(),
            } },
            "adaptive_selection": crate::search::adaptive_selection_json(&parts.search),
            "process": {
                "cpu": { "total_in_millis": cpu.as_millis() as u64 },
                "mem": {
                    "resident_in_bytes": memory_bytes("VmRSS:", core.env.is_virtual()),
                    "anonymous_in_bytes": memory_bytes("RssAnon:", core.env.is_virtual()),
                },
            },
            // No memory is collected here, so the collectors that clients read of have never run.
            "jvm": {
                "uptime_in_millis": (core.env.now() - core.started).as_millis() as u64,
                "gc": { "collectors": { "young": never.clone(), "old": never.clone() } },
                "mem": { "pools": {} },
            },
            "ingest": { "total": { "count": 0, "time_in_millis": 0, "current": 0, "failed": 0 }, "pipelines": {} },
            "transport": {
                "rx_size_in_bytes": net.rx_bytes,
                "tx_size_in_bytes": net.tx_bytes,
                "compressed_paths": core.compressed_paths(),
            },
        });
        if copies {
            self.add_copies(&mut stats["indices"]);
        }
        self.add_disk(&mut stats, copies);
        // Where nobody else takes the cores of a simulated host, its process has all that is used of them.
        if let Some(percent) = core.env.machine_cpu_percent() {
            stats["os"] = json!({ "cpu": { "percent": percent } });
        }
        // Simulated hosts have neither control groups nor handles.
        if !core.env.is_virtual() {
            add_process(&mut stats);
        }
        stats
    }

    /// Adds the node's disk: what it moved where it is simulated, and its room beside the copies.
    fn add_disk(&self, stats: &mut Value, copies: bool) {
        let core = self.core();
        // The kernel counts the machine's disks, not a process's: only a simulated host has one of its own.
        if let Some(disk) = core.env.disk_counts() {
            stats["fs"] = json!({ "io_stats": { "total": {
                "read_kilobytes": disk.read_bytes >> 10,
                "write_kilobytes": disk.written_bytes >> 10,
                "io_time_in_millis": disk.busy.as_millis() as u64,
            } } });
        }
        // What copies take is added up for it. A disk of the virtual world may have no size.
        let disk = if copies { disk_usage::look(core).disk } else { None };
        if let Some((total, free)) = disk {
            stats["fs"]["total"] = json!({
                "total_in_bytes": total, "free_in_bytes": free, "available_in_bytes": free,
            });
        }
    }

    /// Adds the sums over all copies here.
    fn add_copies(&self, indices: &mut Value) {
        let shards = self.core().shards.borrow();
        let stores: Vec<store::ShardStats> =
            shards.values().filter_map(|shard| Some(shard.store().ok()?.stats())).collect();
        for (metric, sums) in stats_json(&stores) {
            // The node counts its searches by itself: those of copies that have left it, too.
            if metric != "search" {
                indices[metric] = sums;
            }
        }
    }
}

/// Adds what the kernel tells of this process.
fn add_process(stats: &mut Value) {
    if let Some(cgroup) = super::cgroup::stats() {
        stats["os"] = json!({ "cgroup": cgroup });
    }
    if let Ok(handles) = std::fs::read_dir("/proc/self/fd") {
        stats["process"]["open_file_descriptors"] = handles.count().into();
    }
    // The disk is not this process's, but these bytes are.
    if let (Some(read), Some(written)) =
        (of_process("io", "read_bytes:"), of_process("io", "write_bytes:"))
    {
        stats["narrows"]["disk"] =
            json!({ "read_size_in_bytes": read, "written_size_in_bytes": written });
    }
}

/// Memory of this process by its name in `/proc`: resident pages, or those of them that are no file's. 0 in
/// the virtual world, whose hosts have none, and without `/proc`.
fn memory_bytes(name: &str, is_virtual: bool) -> u64 {
    if is_virtual {
        return 0;
    }
    of_process("status", name).unwrap_or(0) * 1024
}

/// A number that a file of `/proc` tells of this process by its name.
fn of_process(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
