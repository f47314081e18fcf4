//! A run on a cluster that was there already, and a bug in the midst of it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use clusters::live::{Address, LiveOptions};
use lab::plan::Plan;
use lab::{Error, LiveHosts, Options, Place, Watch};

/// Says which cluster it is, and that it is green, whatever it is asked; its address.
fn cluster() -> String {
    const BODY: &str = r#"{"cluster_uuid":"uuid","status":"green","version":{"number":"7.10.2"}}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(read @ 1..) => head.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let len = BODY.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n");
            // Whoever asked may have gone.
            let _ = stream.write_all(format!("{head}\r\n{BODY}").as_bytes());
        }
    });
    address
}

/// Breaks as soon as something begins.
struct Breaks;

impl Watch for Breaks {
    fn begin(&self, _: &str, _: Option<&str>, _: Option<u64>, _: &str) {
        panic!("as a bug does");
    }
}

/// What is left in the journal is still to be put back.
#[test]
fn a_cluster_is_put_back_by_a_run_that_panics() {
    let follower = LiveOptions::anonymous(
        Address::parse_all([cluster().as_str()]).unwrap(),
        Duration::from_secs(60),
    );
    let hosts = LiveHosts { follower, leader: None, allow_changes: true, any_version: true };
    let dir = tempfile::tempdir().unwrap();
    let options = Options { scale: 0.01, watch: Rc::new(Breaks), ..Options::new(dir.path()) };
    let plan = Plan::open("replica-over-link").unwrap();
    let executed = lab::execute(&plan, &Place::Live(Box::new(hosts)), &options).unwrap();
    assert!(matches!(executed.ended, Err(Error::Panicked)), "{:?}", executed.ended);
    assert!(executed.dir.join("manifest.json").exists());
    let left = lab::JOURNALS.map(|name| executed.dir.join(name).exists());
    assert_eq!(left, [false, false]);
}
