//! The page that stays open in a browser, against clusters whose truth is known.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clusters::{Clusters, EmbeddedClusters, OpenSearchClusters, TopologySpec};
use serde_json::{Value, json};
use testbed::tls::Authority;
use testbed::{CannotRun, free_port};

use crate::browser::Browser;
use crate::common::cluster::Cluster;
use crate::common::started::{ask, fill, urls};
use crate::common::watched::Watched;
use crate::common::{BINARY, PATIENCE, SECRET, done, look_until, narrows, only_run, private};
use crate::opensearch::not_fetched;

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

/// The variable that says where pictures are left for people.
const PICTURES: &str = "NARROWS_PICTURES";

/// Where pictures are left to be looked at.
fn pictures() -> PathBuf {
    let dir = std::env::var_os(PICTURES)
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures"), PathBuf::from);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn take_pictures(browser: &mut Browser, name: &str) {
    for width in [380, 800, 1600] {
        let grounds = [("light", false), ("dark", true)].map(|(theme, is_dark)| {
            let file = pictures().join(format!("{name}-{width}-{theme}.png"));
            browser.picture(width, is_dark, &file);
            browser.until(
                &format!("nothing sticks out at {width}"),
                "document.documentElement.scrollWidth <= innerWidth",
            );
            // A page without anything on it has fewer bytes.
            assert!(std::fs::metadata(&file).unwrap().len() > 20_000, "{}", file.display());
            browser.value("getComputedStyle(document.documentElement).getPropertyValue('--ground')")
        });
        assert_ne!(grounds[0], grounds[1], "{name} has a theme for the dark");
    }
}

/// The names of index, source and target of the recovery that goes on, as the cluster itself tells them.
async fn truth<T: Clusters>(target: &T) -> (String, String) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let path = "/orders/_recovery?active_only=true";
        let answer = ask(target, "c", "GET", path, Value::Null).await;
        let name = |end: &str| {
            let found = answer.pointer(&format!("/orders/shards/0/{end}/name"));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        if let (Some(source), Some(target)) = (name("source"), name("target")) {
            return (source, target);
        }
        assert!(Instant::now() < give_up, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Two nodes of one cluster.
fn two_nodes() -> TopologySpec {
    TopologySpec::alone("c", 2)
}

pub fn the_page_says_of_opensearch_what_was_done_to_it() -> Result<(), CannotRun> {
    world::real_world::run(1, async |env| {
        let mut target = OpenSearchClusters::new(&env);
        target.start(&two_nodes()).await.map_err(not_fetched)?;
        is_said(&target, "opensearch").await;
        target.stop().await;
        Ok(())
    })
}

pub fn the_page_says_of_the_embedded_engine_what_was_done_to_it() {
    world::real_world::run(1, async |env| {
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        target.start(&two_nodes()).await.unwrap();
        is_said(&target, "embedded").await;
        target.stop().await;
    });
}

/// Holds a recovery with a throttle, and reads on the page what was done.
async fn is_said<T: Clusters>(target: &T, name: &str) {
    let limit = async |limit: &str| {
        let body = json!({"persistent": {LIMIT: limit}});
        ask(target, "c", "PUT", "/_cluster/settings", body).await;
    };
    limit("500kb").await;
    // 120 MB, which take four minutes.
    fill(target, "c", "orders", 1, 12_000).await;
    let watched = Watched::start(&["--web", "127.0.0.1:0", &urls(target, "c")]);
    let mut browser = Browser::start(&[]);
    browser.open(watched.url());
    browser.until_says("#health", "green");
    ask(target, "c", "PUT", "/orders/_settings", json!({"number_of_replicas": 1})).await;
    let (from, to) = truth(target).await;
    // What was injected: the class, the setting with its value, where it is, and between which nodes. Each look paints
    // anew, so that what belongs together is read together.
    browser.until(
        "the verdict is there",
        &format!(
            "document.querySelector('.finding .class')?.innerText.startsWith('rate limit') \
             && document.querySelector('.finding').innerText.includes('{LIMIT} = 500kb, try ') \
             && document.querySelector('#headline').innerText.startsWith('rate limit: ')"
        ),
    );
    // Some seconds may pass between the looks that tell of a recovery and those that tell of health.
    browser.until(
        "the replica is on its way",
        "document.querySelector('#health')?.innerText === 'yellow' \
         && document.querySelector('#waiting-part')?.innerText.includes('No copy')",
    );
    let row = "document.querySelector('#recoveries tbody tr')?.innerText ?? ''";
    browser.until(
        "its row is there",
        &format!("[`orders[0]`, `{from} → {to}`].every((words) => ({row}).includes(words))"),
    );
    let spoken = "document.querySelector('#flow svg')?.getAttribute('aria-label') ?? ''";
    browser.until("its flow is spoken", &format!("({spoken}).includes('{from} to {to} ')"));
    // A chart for each of both nodes, and by part of a name for one of them.
    let drawn =
        "[...document.querySelectorAll('#small svg')].map((one) => one.ariaLabel).sort().join()";
    browser.until(
        "both nodes have a chart",
        &format!("[{from:?}, {to:?}].every((node) => {drawn}.includes(node + ': '))"),
    );
    let listed = "[...document.querySelectorAll('#nodes tbody th')].map((one) => one.innerText)";
    browser.until("nodes stand by name", &format!("{listed}.join() === {listed}.sort().join()"));
    browser.until(
        "no line breaks between a number and its unit",
        "!/\\d [kMG]?B\\/s/.test(document.querySelector('#headline').textContent)",
    );
    for place in ["#headline", ".says"] {
        let name = format!("document.querySelector('{place} .whole')?.innerText");
        let text = format!("document.querySelector('{place}').innerText");
        browser.until(
            "a name with a hyphen is not broken, and is read as it is",
            &format!("[{from:?}, {to:?}].some((node) => {name} === node && {text}.includes(` ${{node}} `))"),
        );
    }
    let named = |part: &str| {
        format!(
            "{{ const part = document.querySelector('#filter'); part.value = {part:?};
            part.dispatchEvent(new Event('input')) }}"
        )
    };
    browser.value(&named(&to));
    browser.until(
        "one node is drawn and listed",
        &format!(
            "{drawn}.startsWith({to:?} + ': ') && document.querySelectorAll('#small svg').length === 1 \
             && document.querySelectorAll('#nodes tbody tr').length === 1"
        ),
    );
    browser.value(&named(""));
    // Chunks come in lumps, so that not every look finds the rate.
    let rate = "parseFloat(document.querySelector('#totals div:nth-child(3) dd').innerText)";
    let is_held = format!("{rate} > 0.1 && {rate} < 1.3");
    browser.until("a rate by 500 KiB a second", &is_held);
    let green = "document.querySelector('#totals div:nth-child(5) dd').innerText";
    browser.until("an interval until green", &format!("/^in .+ to /.test({green})"));
    // What it rests on is folded away, and there.
    browser.value(
        "document.querySelectorAll('.finding details').forEach((one) => { one.open = true })",
    );
    for words in ["PUT _cluster/settings", "ruled out: ", "_cluster/settings indices.recovery"] {
        browser.until_says(".finding", words);
    }
    browser.widen(1600);
    let squeezed = "[...document.querySelectorAll('.finding dd')].filter((one) => one.clientWidth < 150).length";
    assert_eq!(browser.value(squeezed), json!(0), "evidence has room beside its names");
    let within = "document.documentElement.scrollWidth <= window.innerWidth";
    browser.until("nothing is wider than the window", within);
    browser.until(
        "the look after leaves it unfolded",
        "document.querySelector('.finding details').open",
    );
    browser.value(
        "document.querySelectorAll('.finding details').forEach((one) => { one.open = false })",
    );
    // The charts that people are shown have some history.
    if std::env::var_os(PICTURES).is_some() {
        std::thread::sleep(Duration::from_secs(20));
    }
    take_pictures(&mut browser, name);

    limit("600kb").await;
    let raised = format!("{LIMIT} was raised from 500kb to 600kb");
    browser.until_says("#events", &raised);
    // The reader's own clock: half an hour off that of everybody else.
    let zone = browser.text("#zone");
    assert!(zone.contains("Asia/Calcutta") || zone.contains("Asia/Kolkata"), "{zone}");
    let in_zone = "[...document.querySelectorAll('#events time')].every((one) => one.innerText \
        === new Date(Date.parse(one.dateTime) + 5.5 * 3600e3).toISOString().slice(11, 19))";
    assert_eq!(browser.value(in_zone), json!(true), "{}", browser.text("#events"));
    // Back to when nothing recovered, by the slider; and to now again.
    let past = "const time = document.querySelector('#time'); time.value = time.min;
        time.dispatchEvent(new Event('input'))";
    browser.value(past);
    browser.until("it goes back", "!document.querySelector('#past').hidden");
    assert!(browser.text("#past").starts_with("As it was at "));
    browser.until_says("#health", "green");
    browser.value("document.querySelector('#live').click()");
    browser.until_says("#health", "yellow");
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert!(!browser.text("body").contains(SECRET));
    assert_eq!(watched.end("TERM"), Some(0));
}

pub fn steps_of_steer_and_an_answer_of_what_if_are_shown() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let uuid = cluster.ask("GET", "/", "")["cluster_uuid"].as_str().unwrap().to_owned();
    let (runs, folder) = (dir.path().to_str().unwrap(), dir.path().join("clusters").join(uuid));
    let arguments = ["--web", "127.0.0.1:0", cluster.url(), "--interval", "500ms", "--runs", runs];
    let watched = Watched::start(&arguments);
    let mut browser = Browser::start(&[]);
    browser.open(watched.url());
    browser.until_says("#health", "green");
    let parts =
        "['steering-part', 'outlook-part'].map((id) => document.getElementById(id).hidden).join()";
    assert_eq!(browser.value(parts), "true,true", "where nothing is there nothing is shown");
    let date = std::process::Command::new("date").args(["-u", "+%FT%TZ"]).output().unwrap();
    let time = String::from_utf8(date.stdout).unwrap().trim().to_owned();
    let hostile = "<img src=x onerror='window.hurt = 1'>";
    let step = |step: &str| {
        json!({
            "time": time, "step": step, "setting": LIMIT, "from": "2mb", "to": "8mb", "holds": "rate limit",
            "before_per_s": 2e6, "expected": 4.0, "after_per_s": 8e6, "got": 4.0, "why": hostile,
        })
    };
    let point = |t_s: f64, bytes: u64| json!({"t_s": t_s, "copies": 2, "bytes": bytes});
    let answer = json!({
        "variant": "as it is", "between_s": [60.0, 90.0], "curve": [point(1.0, 6_000_000_000), point(70.0, 0)],
    });
    let asked = format!("{hostile} lost for good");
    let answer = json!({"asked": asked, "until": "green", "lost": [hostile], "answers": [answer]});
    std::fs::create_dir_all(&folder).unwrap();
    let names = ["begin", "begin", "set", "keep"];
    let steps = names.map(|name| step(name).to_string() + "\n").concat();
    std::fs::write(folder.join("steps.jsonl"), steps).unwrap();
    std::fs::write(folder.join("answer.json"), answer.to_string()).unwrap();
    browser.until("both are shown", &format!("{parts} === 'false,false'"));
    let row = browser.text("#steering tbody tr");
    for words in [LIMIT, "2mb → 8mb", "kept", "2.00 MB/s", "8.00 MB/s", "4.0 times", hostile] {
        assert!(row.contains(words), "{words}: {row}");
    }
    let [last, killed] = ["first", "last"].map(|at| format!("#steering article:{at}-child h3"));
    assert!(browser.text(&last).starts_with("Begun at "));
    assert!(browser.text(&last).ends_with(", goes on"));
    assert!(browser.text(&killed).ends_with(", ended untold"), "{}", browser.text(&killed));
    assert_eq!(browser.text("#steering .more"), format!("Allowed: {hostile}."));
    assert!(browser.text("#marks").contains("steer had a setting on trial"));
    browser.widen(800);
    let in_sight = "[...document.querySelector('#steering tbody tr').cells].every((cell) => \
        cell.getBoundingClientRect().right <= document.getElementById('steering').getBoundingClientRect().right)";
    browser.until("all columns are in sight", in_sight);
    // Between a number and its unit no line is broken.
    let outlook = browser.text("#outlook").replace('\u{a0}', " ");
    assert!(outlook.contains(&format!("{asked}: green in 60.0 s to 90.0 s")), "{outlook}");
    assert!(
        outlook.contains("as it was on "),
        "an answer of yesterday is known by its day: {outlook}"
    );
    let drawn =
        "document.querySelectorAll('#chart .trial, #outlook .predicted, #outlook .within').length";
    assert_eq!(
        browser.value(drawn),
        json!(4),
        "a trial, a curve with its key, and when it is green"
    );
    let times = "[...document.querySelectorAll('#outlook text.tick')].map((tick) => tick.textContent).join()";
    let times = browser.value(times).to_string();
    assert!(times.contains("45.9 s"), "a time stands where it says: {times}");
    assert_eq!(browser.value("window.hurt ?? 'unhurt'"), "unhurt");
    take_pictures(&mut browser, "left");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

pub fn a_report_fits_every_width_in_both_themes() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["run", "remote-recovery", "--on", "virtual", "--scale", "0.05", "--runs"];
    done(&narrows(&[&small[..], &[dir.path().to_str().unwrap()]].concat()));
    let run = only_run(dir.path());
    let mut browser = Browser::start(&[]);
    browser.open(&format!("file://{}", run.join("report.html").display()));
    browser.until("it is there", "document.querySelectorAll('svg').length > 4");
    take_pictures(&mut browser, "report");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

pub fn tabs_policy_and_reconnecting() {
    let (one, two) = (Cluster::start(2), Cluster::start_with(1, |c| c.args(["--name", "second"])));
    let address = format!("127.0.0.1:{}", free_port());
    let arguments = [one.url(), "--also", two.url(), "--web", &address, "--interval", "500ms"];
    let watched = Watched::start(&arguments);
    let mut browser = Browser::start(&[]);
    let keeps_what_came = "window.EventSource = class extends EventSource {
        constructor(url) {
            super(url);
            window.feed = this;
            this.addEventListener('all', (event) => { window.all = event.data; });
        }
    }";
    let source = json!({"source": keeps_what_came});
    browser.call("Page.addScriptToEvaluateOnNewDocument", source);
    browser.open(watched.url());
    browser.until("both are there", "document.querySelectorAll('[role=tab]').length === 2");
    browser.until_says("#health", "green");
    assert!(browser.text("#title").starts_with("narrows "), "{}", browser.text("#title"));
    // An earlier moment that comes once its reader is back at now is not shown.
    let late = "(async () => {
        const pause = (ms) => new Promise((over) => setTimeout(over, ms));
        const real = window.fetch;
        const answered = new Promise((over) => {
            window.fetch = async (url) => {
                const answer = await real(url);
                await pause(300);
                setTimeout(over, 300);
                return answer;
            };
        });
        document.querySelector('#chart').click();
        document.querySelector('#live').click();
        await answered;
        window.fetch = real;
        return document.querySelector('#past').hidden;
    })()";
    assert_eq!(browser.value(late), true);
    // No line is drawn across a time in which narrows slept. A page that is opened again begins with a look.
    browser.open(watched.url());
    let begins = "document.querySelector('#health')?.innerText === 'green' && JSON.parse(window.all)[0].frame !== null";
    browser.until("it begins with a look", begins);
    let slept = "(() => {
        const all = JSON.parse(window.all);
        const told = [400, 399, 398, 397, 3, 2, 1, 0];
        all[0].history.from_ms = told.map((seconds) => Date.now() - seconds * 1000);
        all[0].history.figures = { total: [told.map(() => 5000), told.map(() => 9000)] };
        window.feed.dispatchEvent(new MessageEvent('all', { data: JSON.stringify(all) }));
        return document.querySelector('.total-line').getAttribute('d').split('M').length - 1;
    })()";
    assert_eq!(browser.value(slept), 2);
    // By the keyboard, as tabs are used.
    let right = "document.querySelector('#tab-0').focus();
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))";
    browser.value(right);
    browser
        .until("the other tab", "document.querySelector('#title').innerText.startsWith('second')");
    assert_eq!(browser.value("document.activeElement.id"), "tab-1");

    // What the policy forbids: scripts of others, other addresses, HTML out of text.
    let script = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hurt = 1'}))";
    browser.value(&format!("try {{ {script} }} catch {{}}"));
    assert_eq!(browser.value("window.hurt ?? 'unhurt'"), "unhurt");
    let inner =
        "try { document.body.innerHTML = '<b>x</b>'; 'put in' } catch (error) { error.name }";
    assert_eq!(browser.value(inner), "TypeError");
    let asks = format!("fetch('{}').then(() => 'asked', () => 'refused')", two.url());
    assert_eq!(browser.value(&asks), "refused");
    // A complaint may come after the answer.
    let complaints = || {
        browser.value("0");
        browser.complaints.len()
    };
    let complaints = look_until(complaints, |count| *count >= 2);
    assert!(complaints >= 2, "{:?}", browser.complaints);
    browser.complaints.clear();

    // A cluster that goes away is dimmed, and it is said.
    drop(two);
    browser.until_says("#away", "no answer for");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), true);
    assert_eq!(browser.text("#health"), "unknown");
    browser.until_says("#events", "does not answer");
    browser.picture(800, false, &pictures().join("cluster-away-800-light.png"));
    browser.value("document.querySelector('#tab-0').click()");
    browser.until_says("#health", "green");
    assert_eq!(browser.value("document.querySelector('#away').hidden"), true);

    // narrows itself goes away, and comes back: the page goes on by itself.
    assert_eq!(watched.end("TERM"), Some(0));
    browser.until_says("#away", "narrows has not been heard");
    assert_eq!(browser.text("#pulse"), "not connected");
    let again = Watched::start(&[one.url(), "--web", &address, "--interval", "500ms"]);
    browser.until("it goes on", "document.querySelector('#pulse').innerText.startsWith('live')");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), false);
    browser.until("one cluster, no tabs", "document.querySelector('#tabs').hidden");
    drop(again);
}

pub fn a_browser_shows_the_token_over_tls() {
    let cluster = Cluster::start(1);
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    let token = private(dir.path(), "token = \"a-token-of-sufficient-length\"\n");
    let (cert, key) = (authority.file("cert.pem"), authority.file("key.pem"));
    let mut arguments = vec![cluster.url(), "--web", "0.0.0.0:0", "--interval", "500ms"];
    arguments.extend(["--web-token-file", &token, "--web-cert", &cert, "--web-key", &key]);
    let watched = Watched::start(&arguments);
    let port = watched.address().rsplit(':').next().unwrap();
    let mut browser = Browser::start(&["--ignore-certificate-errors"]);
    browser.open(&format!("https://localhost:{port}/"));
    browser.until("it is not shown", "!document.querySelector('#health')");
    browser.open(&format!("https://narrows:a-token-of-sufficient-length@localhost:{port}/"));
    // Events come, too.
    browser.until_says("#health", "green");
    let shown = browser.call("Page.captureScreenshot", json!({}))["data"].clone();
    assert!(STANDARD.decode(shown.as_str().unwrap()).unwrap().len() > 10_000);
}
