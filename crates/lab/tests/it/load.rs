//! The load driver in virtual time: exact figures against servers that take a known time, and real nodes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clusters::{Clusters, TopologySpec, VirtualClusters};
use lab::load::{Arrival, Extent, Live, Load, Operation, in_virtual_time};
use record::LoadFigures;
use world::{Env, Task};

const GOOD: &[u8] =
    br#"{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0}}"#;

testbed::rest_host!();

/// A server that answers every request after `takes`, however many there are; every `hangs`-th never.
async fn server(env: &Env, name: &str, takes: Duration, hangs: u64) -> (String, Task<()>) {
    let (host, asked) = (env.host(name), Cell::new(0u64));
    let answer = async move |_: rest::RestRequest| {
        asked.set(asked.get() + 1);
        if hangs > 0 && asked.get() % hangs == 0 {
            std::future::pending::<()>().await;
        }
        host.sleep(takes).await;
        Some((200, Bytes::from_static(GOOD)))
    };
    rest_host(env, name, answer).await
}

fn search() -> Operation {
    Operation::search("search", "a", vec![r#"{"query":{"match_all":{}}}"#.to_owned()])
}

/// Drives a load against servers that take so many milliseconds each.
fn against(
    takes_ms: &'static [u64],
    hangs: u64,
    change: impl Fn(&mut Load) + 'static,
) -> LoadFigures {
    world::virtual_world::run(3, async move |env| {
        let (mut hosts, mut servers) = (Vec::new(), Vec::new());
        for (n, takes) in takes_ms.iter().enumerate() {
            let takes = Duration::from_millis(*takes);
            let (address, task) = server(&env, &format!("s{n}"), takes, hangs).await;
            hosts.push(address);
            servers.push(task);
        }
        let mut load = Load::closed(hosts, 10, Extent::Time(Duration::from_secs(10)), 3);
        change(&mut load);
        in_virtual_time(&env, &load, &search(), &Arc::new(Live::default())).await.unwrap()
    })
}

#[test]
fn a_closed_loop_has_its_throughput_from_its_latency() {
    let figures = against(&[20], 0, |_| ());
    let latency = figures.latency.unwrap();
    let clients = figures.throughput.mean_per_s * latency.mean_ms / 1e3;
    assert!((clients - 10.0).abs() < 0.1, "throughput x mean latency is {clients}, not 10 clients");
    assert!((20.0..22.0).contains(&latency.p50_ms), "{latency:?}");
    assert_eq!(figures.throughput.windows.len(), 10);
    assert_eq!((figures.failed(), figures.slipped_starts), (0, 0));
}

#[test]
fn an_open_loop_keeps_its_rate_while_clients_are_free() {
    for poisson in [false, true] {
        let figures = against(&[20], 0, move |load| {
            load.clients = 100;
            let rate_per_s = 200.0;
            load.arrival = match poisson {
                true => Arrival::Poisson { rate_per_s },
                false => Arrival::Deterministic { rate_per_s },
            };
        });
        let rate = figures.throughput.mean_per_s;
        assert!((rate / 200.0 - 1.0).abs() < 0.05, "{rate}");
        assert!(figures.latency.unwrap().p99_ms < 22.0, "{:?}", figures.latency);
        assert_eq!(figures.busy_starts, 0);
    }
}

#[test]
fn an_open_loop_beyond_what_the_clients_can_do_shows_the_wait() {
    // Ten clients of 20 ms each do 500 a second, and 1000 are to start: the last that is sent, a second after the end,
    // is late by 5.5 s, and what was still to be sent then counts as not sent, with its wait until then.
    let figures = against(&[20], 0, |load| {
        load.arrival = Arrival::Deterministic { rate_per_s: 1000.0 };
    });
    let (latency, service) = (figures.latency.unwrap(), figures.service_time.unwrap());
    assert!(service.p100_ms < 22.0, "{service:?}");
    assert!(latency.p50_ms > 2500.0 && latency.p100_ms > 5400.0, "{latency:?}");
    assert!(figures.busy_starts > 9_900, "{}", figures.busy_starts);
    let unsent = figures.errors["not sent in time"];
    assert!((4400..4600).contains(&unsent), "{unsent}");
}

#[test]
fn hosts_are_asked_in_turn_and_a_lost_one_is_left_out() {
    let figures = against(&[10, 10, 10], 0, |load| load.measured = Extent::Requests(3000));
    assert!(figures.hosts.values().eq(&[1000_u64; 3]), "{:?}", figures.hosts);
    let figures = against(&[10, 10], 0, |load| {
        load.hosts.push("nobody:9200".to_owned());
        load.measured = Extent::Time(Duration::from_secs(5));
    });
    // Each time that it is tried again, every client that comes to it at that moment at most.
    let failed = figures.errors["not reachable"];
    assert!((5..=60).contains(&failed), "{:?}", figures.errors);
    assert!(figures.throughput.mean_per_s > 900.0, "{:?}", figures.throughput);
}

#[test]
fn a_wait_for_hosts_that_are_gone_is_not_the_drivers() {
    let figures = against(&[], 0, |load| {
        load.hosts.push("nobody:9200".to_owned());
        load.arrival = Arrival::Deterministic { rate_per_s: 10.0 };
    });
    assert!(figures.errors["not reachable"] > 0, "{:?}", figures.errors);
    assert_eq!(figures.slipped_starts, 0);
    assert!(figures.busy_starts > 0);
}

#[test]
fn an_answer_that_never_comes_is_given_up_and_counted_with_its_time() {
    let figures = against(&[10], 100, |load| {
        load.timeout = Duration::from_millis(500);
        load.measured = Extent::Requests(1000);
    });
    assert_eq!(figures.requests, 1000);
    assert_eq!(figures.errors, BTreeMap::from([("timeout".to_owned(), 10)]));
    let latency = figures.latency.unwrap();
    assert!((500.0..530.0).contains(&latency.p100_ms) && latency.p50_ms < 12.0, "{latency:?}");
}

/// The figures of a load of an hour that is stopped after so many seconds, and when it ended.
fn stopped(takes: Duration, clients: u32, rate_per_s: f64, after_s: u64) -> (LoadFigures, f64) {
    world::virtual_world::run(3, async move |env| {
        let (address, _server) = server(&env, "s", takes, 0).await;
        let hour = Extent::Time(Duration::from_secs(3600));
        let arrival = Arrival::Deterministic { rate_per_s };
        let load = Load { arrival, ..Load::closed(vec![address], clients, hour, 3) };
        let live = Arc::new(Live::default());
        let (stop, clock) = (live.clone(), env.clone());
        let _stop = env.spawn("stop", async move {
            clock.sleep(Duration::from_secs(after_s)).await;
            stop.stop();
        });
        let figures = in_virtual_time(&env, &load, &search(), &live).await.unwrap();
        (figures, env.now().as_secs_f64())
    })
}

#[test]
fn a_load_that_is_stopped_tells_what_it_has() {
    let (figures, ended_s) = stopped(Duration::from_millis(10), 2, 0.5, 11);
    assert!(ended_s < 11.2, "{ended_s}");
    assert_eq!(figures.requests, 6, "at 0, 2, .. 10 s");
    assert!((11.0..11.2).contains(&figures.seconds), "{}", figures.seconds);
}

#[test]
fn a_stall_at_the_end_of_a_load_that_is_stopped_is_charged_to_all_that_was_due() {
    let (figures, _) = stopped(Duration::from_secs(20), 1, 10.0, 10);
    // The only client waits for its first answer, which comes ten seconds after the load was stopped.
    let unsent = figures.errors["not sent in time"];
    assert!((98..=103).contains(&unsent), "{unsent}");
    assert!(figures.latency.unwrap().p50_ms > 10_000.0, "{:?}", figures.latency);
}

#[test]
fn nodes_in_virtual_time_answer_and_the_same_seed_gives_the_same_figures() {
    let once = || {
        world::virtual_world::run_traced(3, async |env| {
            let mut target = VirtualClusters::new(&env);
            let topology = TopologySpec::alone("leader", 3);
            target.start(&topology).await.unwrap();
            let hosts = target.nodes("leader").into_iter().map(|node| node.http).collect();
            let load = Load {
                arrival: Arrival::Poisson { rate_per_s: 300.0 },
                ..Load::closed(hosts, 8, Extent::Requests(600), 11)
            };
            let health = Operation::get("health", "/_cluster/health");
            let live = Arc::new(Live::default());
            let figures = in_virtual_time(&env, &load, &health, &live).await.unwrap();
            target.stop().await;
            figures
        })
        .unwrap()
    };
    let (figures, trace) = once();
    assert_eq!((&figures, &trace), (&once().0, &once().1));
    assert_eq!((figures.requests, figures.failed()), (600, 0));
    assert!(figures.hosts.values().eq(&[200_u64; 3]), "{:?}", figures.hosts);
}

/// The same driver on real sockets.
mod on_sockets {
    use clusters::wire::WireHost;
    use lab::load::start;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What a server does with each of its requests, by its number.
    type Behaviour = fn(u64) -> Act;

    enum Act {
        /// Answers with this status and body.
        Answer(u16, &'static str),
        /// The same, in chunks.
        Chunked(&'static [u8]),
        /// The same, and closes the connection after it.
        Close(&'static str),
        /// Closes the connection instead of answering.
        HangUp,
        /// Says nothing, ever.
        Silence,
    }

    async fn server(env: &Env, behaviour: Behaviour) -> (String, Task<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let inner = env.clone();
        let task = env.spawn("server", async move {
            let mut asked = 0;
            let mut tasks = Vec::new();
            let next = std::rc::Rc::new(Cell::new(0));
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                asked += 1;
                let next = next.clone();
                tasks.push(inner.spawn("connection", async move {
                    let mut buffer = [0; 8192];
                    while stream.read(&mut buffer).await.unwrap_or(0) > 0 {
                        next.set(next.get() + 1);
                        let act = behaviour(next.get());
                        let (head, body, closes) = match act {
                            Act::Answer(status, body) => {
                                let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
                                (head, body.as_bytes(), false)
                            }
                            Act::Chunked(body) => {
                                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), body, false)
                            }
                            Act::Close(body) => {
                                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                                (head, body.as_bytes(), true)
                            }
                            Act::HangUp => return,
                            Act::Silence => std::future::pending().await,
                        };
                        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
                        if closes {
                            return;
                        }
                    }
                }));
                assert!(asked < 100_000);
            }
        });
        (address, task)
    }

    fn against(behaviour: Behaviour, change: impl Fn(&mut Load), threads: u32) -> LoadFigures {
        world::real_world::run(1, async |env| {
            let (address, _server) = server(&env, behaviour).await;
            let mut load = Load::closed(vec![address.clone()], 8, Extent::Requests(2000), 3);
            change(&mut load);
            let hosts: Vec<WireHost> =
                load.hosts.iter().map(|host| WireHost::plain(host)).collect();
            let live = Arc::new(Live::default());
            start(&load, &search(), &hosts, threads, &live).unwrap().figures().await.unwrap()
        })
    }

    #[test]
    fn every_request_is_answered_on_one_thread_or_two() {
        for threads in [1, 2] {
            let figures = against(|_| Act::Answer(200, "{\"hits\":1}"), |_| (), threads);
            assert_eq!((figures.requests, figures.failed()), (2000, 0));
            assert_eq!(figures.answer_bytes, 2000 * 10);
            let driver = figures.driver.unwrap();
            assert!(driver.cpu_us_per_request > 0.0 && driver.cpu_share > 0.0, "{driver:?}");
        }
    }

    #[test]
    fn chunks_and_connections_that_end_are_no_failures() {
        let behaviour = |n| match n % 3 {
            0 => Act::Close("{\"took\":1}"),
            1 => Act::Chunked(b"5\r\n{\"too\r\n5\r\nk\":1}\r\n0\r\n\r\n"),
            _ => Act::Answer(200, "{\"took\":1}"),
        };
        let figures = against(behaviour, |_| (), 1);
        assert_eq!((figures.requests, figures.errors.clone()), (2000, BTreeMap::new()));
        assert_eq!(figures.answer_bytes, 2000 * 10);
    }

    #[test]
    fn a_full_queue_is_counted_by_its_name() {
        const FULL: &str = r#"{"error":{"root_cause":[{"type":"es_rejected_execution_exception"}],"type":"x"},"status":429}"#;
        let behaviour =
            |n| if n % 4 == 0 { Act::Answer(429, FULL) } else { Act::Answer(200, "{}") };
        let figures = against(behaviour, |_| (), 1);
        assert_eq!(
            figures.errors,
            BTreeMap::from([("429 es_rejected_execution_exception".to_owned(), 500)])
        );
    }

    #[test]
    fn a_server_that_hangs_up_or_falls_silent_stops_nobody_else() {
        let behaviour = |n| match n % 100 {
            // A search is asked once more on a fresh connection: twice is a failure.
            50 | 51 => Act::HangUp,
            99 => Act::Silence,
            _ => Act::Answer(200, "{}"),
        };
        let figures = against(behaviour, |load| load.timeout = Duration::from_secs(1), 1);
        assert_eq!(figures.requests, 2000);
        assert!(figures.errors["timeout"] >= 15, "{:?}", figures.errors);
        let closed = figures.errors.get("connection closed").copied().unwrap_or(0);
        assert!(figures.failed() == closed + figures.errors["timeout"], "{:?}", figures.errors);
    }

    #[test]
    fn a_host_that_is_gone_is_counted_and_left_out() {
        let gone = "127.0.0.1:1";
        let figures =
            against(|_| Act::Answer(200, "{}"), |load| load.hosts.push(gone.to_owned()), 1);
        let failed = figures.errors["not reachable"];
        // In turn it would be every second request.
        assert!((1..500).contains(&failed), "{:?}", figures.errors);
        assert_eq!(figures.hosts[gone], failed);
    }

    #[test]
    fn a_load_that_is_dropped_ends_by_itself() {
        world::real_world::run(1, async |env| {
            let (address, _server) = server(&env, |_| Act::Answer(200, "{}")).await;
            let hosts = [WireHost::plain(&address)];
            let load = Load::closed(vec![address], 2, Extent::Time(Duration::from_secs(3600)), 3);
            let live = Arc::new(Live::default());
            drop(start(&load, &search(), &hosts, 1, &live).unwrap());
            loop {
                let before = live.sent();
                env.sleep(Duration::from_millis(300)).await;
                if live.sent() == before {
                    break;
                }
            }
        });
    }
}
