//! A real Prometheus asks for figures, over TLS and with the token, and answers what the dashboard asks it.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testbed::free_port;
use testbed::tls::Authority;

use crate::common::cluster::{Cluster, http};
use crate::common::running::Running;
use crate::common::watched::Watched;
use crate::common::{look_until, noise, private, until};

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/narrows.json");
const TOKEN: &str = "a-token-of-sufficient-length";

struct Prometheus {
    url: String,
    _child: Running,
}

impl Prometheus {
    fn start(dir: &Path, config: &str) -> Prometheus {
        let file = dir.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        let child = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let prometheus = Prometheus { url: format!("http://{address}"), _child: child };
        until("prometheus listens", || std::net::TcpStream::connect(&address).is_ok());
        prometheus
    }

    fn ask(&self, path: &str) -> Value {
        let (_, text) = http(&self.url, "GET", path, "");
        // It answers in chunks, whose lengths stand on lines of their own.
        let json: String = text.lines().filter(|line| line.starts_with('{')).collect();
        serde_json::from_str(&json).unwrap_or(Value::Null)
    }

    /// The samples that an expression gives now.
    fn query(&self, expression: &str) -> Vec<Value> {
        let escaped: String = expression
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
                other => format!("%{other:02X}"),
            })
            .collect();
        let answer = self.ask(&format!("/api/v1/query?query={escaped}"));
        assert!(answer.is_null() || answer["status"] == "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    fn value(&self, expression: &str) -> Option<f64> {
        self.query(expression).first()?["value"][1].as_str()?.parse().ok()
    }
}

pub fn prometheus_reads_them_and_the_dashboard_has_something_to_show() {
    let cluster = Cluster::start(2);
    cluster.set(&json!({"indices.recovery.max_bytes_per_sec": "500kb"}));
    // 120 MB, which take four minutes.
    noise::recover(&cluster, 12_000);

    let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let token = private(dir.path(), &format!("token = \"{TOKEN}\"\n"));
    let (cert, key) = (authority.file("cert.pem"), authority.file("key.pem"));
    let mut arguments = vec![cluster.url(), "--serve-metrics", "127.0.0.1:0", "--web-token-file"];
    arguments.extend([token.as_str(), "--web-cert", &cert, "--web-key", &key]);
    let watched = Watched::start(&arguments);
    let port = watched.address().rsplit(':').next().unwrap();
    let config = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  - job_name: narrows\n    scheme: https\n    \
         authorization: {{ credentials: {TOKEN} }}\n    tls_config: {{ ca_file: {} }}\n    \
         static_configs: [{{ targets: [\"localhost:{port}\"] }}]\n",
        authority.file("ca.pem")
    );
    let prometheus = Prometheus::start(dir.path(), &config);

    // What was injected: a limiter, 500 KiB a second between the two nodes.
    until("the verdict is kept", || {
        prometheus
            .value("narrows_finding_strength_ratio{class=\"rate limit\"}")
            .is_some_and(|s| s > 0.3)
    });
    // Each by itself: where the machine stands still, a scrape comes too late, and there are no figures until the next.
    until("the target is up and says nothing of an error", || {
        let targets = prometheus.ask("/api/v1/targets");
        let target = &targets["data"]["activeTargets"][0];
        target["health"] == "up" && target["lastError"] == ""
    });
    until("a rate by the limit", || {
        let rate = "sum(avg_over_time(narrows_recovery_bytes_per_second[10s]))";
        prometheus.value(rate).is_some_and(|rate| (200e3..900e3).contains(&rate))
    });
    until("one recovery", || prometheus.value("narrows_recoveries") == Some(1.0));
    until("yellow", || prometheus.value("narrows_health{status=\"yellow\"}") == Some(1.0));
    let bound = |bound: &str| {
        prometheus.value(&format!("narrows_time_to_green_seconds{{bound=\"{bound}\"}}"))
    };
    until("an interval until green", || {
        let both = bound("soon").zip(bound("late"));
        both.is_some_and(|(soon, late)| soon > 5.0 && soon < late)
    });
    until("looks are counted", || {
        prometheus.value("increase(narrows_looks_total[30s])").is_some_and(|looks| looks > 1.0)
    });
    let metadata = prometheus.ask("/api/v1/metadata")["data"].clone();
    for family in report::metrics::FAMILIES {
        let told = &metadata[family.name][0];
        let expected = json!({"type": family.kind, "unit": family.unit, "help": family.help});
        assert_eq!(*told, expected, "{}", family.name);
    }

    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    let shows = |panel: &Value| {
        panel["targets"].as_array().unwrap().iter().any(|target| {
            let expression = target["expr"].as_str().unwrap().replace("$cluster", ".*");
            !prometheus.query(&expression).is_empty()
        })
    };
    let silent = || {
        let silent = panels.iter().filter(|panel| !shows(panel));
        let titles = silent.map(|panel| panel["title"].as_str().unwrap());
        // The embedded engine has no heap, and says neither how many cores it may use nor what its disk does.
        let has = |title: &&str| !["Heap", "CPU"].contains(title) && !title.starts_with("Disks");
        titles.filter(has).collect::<Vec<&str>>()
    };
    let silent = look_until(silent, Vec::is_empty);
    assert_eq!(silent, Vec::<&str>::new(), "these have nothing to show");

    drop(cluster);
    until("it does not answer", || prometheus.value("narrows_up") == Some(0.0));
    assert_eq!(prometheus.query("narrows_recovery_bytes_per_second"), Vec::<Value>::new());
}
