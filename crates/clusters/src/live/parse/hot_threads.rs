//! `_nodes/hot_threads`: a text for people, in which threads are classified by the frames of their stacks.

use record::observation::HotThreads;

/// Kinds of threads, each with the frames that show it; the first that matches counts.
const KINDS: [(&str, &[&str]); 7] = [
    ("rate_limiter", &["RateLimiter.pause", "SimpleRateLimiter", "RateLimiter$"]),
    ("tls", &["SSLEngine", "SslHandler", "javax.crypto", "sun.security.ssl", "GaloisCounterMode"]),
    (
        "compression",
        &["LZ4", "java.util.zip.Deflater", "java.util.zip.Inflater", "Zstd", "DeflateCompressor"],
    ),
    ("merge", &["ConcurrentMergeScheduler", "Lucene Merge Thread", "SegmentMerger"]),
    (
        "disk",
        &[
            "FileChannelImpl.force", "FileDispatcherImpl.force", "FileDispatcherImpl.pread",
            "FileDispatcherImpl.write",
        ],
    ),
    ("search", &["QueryPhase", "FetchPhase", "SearchService.execute"]),
    (
        "indexing",
        &["InternalEngine.index", "IndexWriter.updateDocument", "IndexWriter.addDocument"],
    ),
];

/// How many threads of each kind each node has. Threads of no kind are not counted.
pub(crate) fn hot_threads(text: &str) -> Vec<HotThreads> {
    let mut nodes: Vec<HotThreads> = Vec::new();
    let mut stack = String::new();
    for line in text.lines() {
        if let Some(node) = line.strip_prefix("::: {") {
            close(&mut nodes, &mut stack);
            let node = node.split('}').next().unwrap_or_default().to_owned();
            nodes.push(HotThreads { node, ..HotThreads::default() });
        } else if line.contains("usage by thread") {
            close(&mut nodes, &mut stack);
            stack.push_str(line);
        } else {
            stack.push_str(line);
            stack.push('\n');
        }
    }
    close(&mut nodes, &mut stack);
    nodes
}

fn close(nodes: &mut [HotThreads], stack: &mut String) {
    let text = std::mem::take(stack);
    let kind = KINDS.iter().find(|(_, frames)| frames.iter().any(|frame| text.contains(frame)));
    if let (Some(node), Some((kind, _))) = (nodes.last_mut(), kind) {
        *node.threads.entry((*kind).to_owned()).or_default() += 1;
        if let Some(percent) = cpu_percent(&text) {
            let busiest = node.busiest_percent.entry((*kind).to_owned()).or_default();
            *busiest = percent.max(*busiest);
        }
    }
}

/// What a thread uses of a core, by the line above its stack. Newer releases begin it with what the thread waited, too,
/// and tell its CPU apart (`cpu=`).
fn cpu_percent(text: &str) -> Option<u32> {
    let (line, _) = text.split_once(" usage by thread")?;
    let told = line.split_once("cpu=").map_or(line, |(_, told)| told);
    let (percent, _) = told.split_once('%')?;
    Some(percent.trim().parse::<f64>().ok()? as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_threads_by_what_they_do() {
        let found = hot_threads(include_str!("samples/hot_threads.txt"));
        let counts: Vec<(&str, Vec<(&str, u32)>)> = found
            .iter()
            .map(|n| (n.node.as_str(), n.threads.iter().map(|(k, c)| (k.as_str(), *c)).collect()))
            .collect();
        assert_eq!(counts, [("es-1", vec![("rate_limiter", 1), ("tls", 1)]), ("es-2", vec![])]);
        let busiest = |kind: &str| found[0].busiest_percent[kind];
        assert_eq!((busiest("rate_limiter"), busiest("tls")), (1, 9));
        assert!(hot_threads("{\"nodes\":{}}").is_empty());
    }
}
