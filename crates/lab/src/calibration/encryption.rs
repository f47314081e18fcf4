//! What TLS between nodes costs in OpenSearch: the same copy between two nodes that send bytes as they are, and between
//! two that encrypt them.
//!
//! Both pairs run at once and copy in turn, so that what else the machine does meets both. A node tells the core time
//! of its process. What a copy takes more of that with TLS is encrypting at the node that sends it, and decrypting at
//! the one that gets it.

use clusters::{ClusterSpec, Clusters, ENCRYPTS, TopologySpec};
use record::text::visible_line;
use world::Env;

use super::compression::{Spent, copy, fill};
use super::copies::{Asked, Content, INDEX, LARGE_BULKS, kept_fields};
use super::measurement::Figure;
use crate::error::{Error, Result};

/// Two nodes of each.
const CLUSTERS: [&str; 2] = ["plain", "encrypted"];
/// Copies of each pair in a lap: what the same copy takes differs by as much as TLS does.
const COPIES: u32 = 5;
const NO_LONGER: &str = "copies that were encrypted took no more core time than others";
const NOT_WHOLE: &str = "in each lap a copy came back to files that were there already";

/// Measures it in two pairs of nodes, which are started for it. Where that fails, as of a target that has no nodes that
/// encrypt, nothing is measured, and it is said why.
pub(super) async fn measure<C: Clusters>(env: &Env, target: &mut C, laps: u32) -> [Figure; 2] {
    let mut topology = TopologySpec::alone(CLUSTERS[0], 2);
    let mut encrypted = ClusterSpec::new(CLUSTERS[1], 2);
    encrypted.settings.insert(ENCRYPTS.to_owned(), "true".to_owned());
    topology.clusters.push(encrypted);
    let pairs = match target.start(&topology).await {
        Ok(()) => in_turn(env, &*target, laps).await,
        Err(error) => Err(Error::from(error)),
    };
    target.stop().await;
    match pairs {
        Ok(pairs) if pairs.is_empty() => figures(&[], NOT_WHOLE),
        Ok(pairs) => figures(&pairs, NO_LONGER),
        Err(error) => figures(&[], &visible_line(&error.to_string())),
    }
}

/// Copies without and with TLS in each lap. The first lap, while little is compiled yet, is left out.
async fn in_turn<C: Clusters>(env: &Env, target: &C, laps: u32) -> Result<Vec<[Spent; 2]>> {
    let asked = CLUSTERS.map(|cluster| Asked { target, cluster, index: INDEX });
    for asked in &asked {
        fill(asked, (LARGE_BULKS, Content::Letters), kept_fields()).await?;
    }
    let mut pairs = Vec::new();
    for lap in 0..=laps {
        let plain = copy(env, &asked[0], COPIES).await?;
        let encrypted = copy(env, &asked[1], COPIES).await?;
        pairs.extend(plain.zip(encrypted).map(|(a, b)| [a, b]).filter(|_| lap > 0));
    }
    Ok(pairs)
}

/// What both cost, by copies without and with them; `why` none of them tells it.
fn figures(pairs: &[[Spent; 2]], why: &str) -> [Figure; 2] {
    let mut encrypt = Figure::new(
        "cores.encrypt_bytes_per_s",
        "five copies of 200 MB between nodes with TLS, in turn with as many between nodes without: what the node that \
         sends them takes more core time",
    );
    let mut decrypt = Figure::new(
        "cores.decrypt_bytes_per_s",
        "the same copies: what the node that gets them takes more core time",
    );
    if pairs.is_empty() {
        encrypt.lap(Err(why.to_owned()));
        decrypt.lap(Err(why.to_owned()));
    }
    for [plain, encrypted] in pairs {
        let [source_s, target_s] = encrypted.longer_s(plain);
        let rate = |longer_s: Option<f64>| {
            longer_s.map(|longer_s| encrypted.bytes / longer_s).ok_or_else(|| why.to_owned())
        };
        encrypt.lap(rate(source_s));
        decrypt.lap(rate(target_s));
    }
    [encrypt, decrypt]
}

#[cfg(test)]
mod tests {
    use super::super::measurement::TargetCalibration;
    use super::*;

    #[test]
    fn tls_costs_what_copies_with_it_take_more() {
        let plain = Spent { bytes: 100e6, source_s: 0.2, target_s: 0.4 };
        let encrypted = Spent { bytes: 200e6, source_s: 0.6, target_s: 0.84 };
        let found = TargetCalibration::of(figures(&[[plain, encrypted]], NO_LONGER), []);
        let laps = found.measured.iter().map(|one| (one.parameter, one.laps[0].round()));
        assert_eq!(laps.collect::<Vec<_>>(), [("cores.encrypt_bytes_per_s", 1e9)]);
        let why = found.not_measured.iter().map(|one| (one.parameter, one.why.as_str()));
        assert_eq!(why.collect::<Vec<_>>(), [("cores.decrypt_bytes_per_s", NO_LONGER)]);
        let none = TargetCalibration::of(figures(&[], "no plugin"), []).not_measured;
        assert!(none.len() == 2 && none.iter().all(|one| one.why == "no plugin"), "{none:?}");
    }
}
