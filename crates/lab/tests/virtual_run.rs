//! The runner on the virtual world: the same steps, record and checker as on real processes.

use clusters::{Target, VirtualTarget};
use lab::plan::Plan;
use lab::runner::{Quiet, Runner, topology};
use record::{FORMAT, Limit, Manifest, Row, RunDir, Status, Writer};

fn manifest() -> Manifest {
    Manifest {
        format: FORMAT,
        run: "test".to_owned(),
        plan: "remote-recovery".to_owned(),
        about: String::new(),
        plan_text: String::new(),
        target: "virtual".to_owned(),
        started: String::new(),
        version: String::new(),
        seed: 1,
        scale: 1.0,
        status: Status::Running,
        machine: record::Machine {
            os: String::new(),
            cpu: String::new(),
            cores: 1,
            memory_bytes: 0,
        },
        link: None,
        nodes: Vec::new(),
        variants: Vec::new(),
    }
}

fn run(dir: std::path::PathBuf) -> (Vec<Row>, world::Trace) {
    let (rows, trace) = world::virtual_world::run_traced(5, async move |env| {
        let plan = Plan::open("remote-recovery").unwrap().resolve(0.01, |_, _| Ok(())).unwrap();
        let mut writer = Writer::create(&dir, &manifest()).unwrap();
        let mut target = VirtualTarget::new(&env);
        target.start(&topology(&plan)).await.unwrap();
        let rows = Runner::new(&env, &plan, &target, &mut writer, &Quiet).run().await.unwrap();
        target.stop().await;
        rows
    })
    .unwrap();
    (rows, trace)
}

#[test]
fn the_same_seed_gives_the_same_rows_and_the_same_trace() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (first, trace) = run(dirs[0].path().join("run"));
    let again = run(dirs[1].path().join("run"));
    assert_eq!((&first, &trace), (&again.0, &again.1));
    assert_eq!(first.len(), 5);
    assert!(first.iter().all(|row| row.verified && row.documents == first[0].documents));
    assert_eq!(first[0].held_by().unwrap().limit, Limit::Latency);
    let read = RunDir::open(&dirs[0].path().join("run")).unwrap();
    assert_eq!(read.rows.len(), 5);
    assert!(read.lines.len() > 100);
}
