//! What tests of runs share.

use clusters::{Clusters, VirtualClusters};
use lab::plan::{Plan, Resolved};
use lab::runner::{Quiet, Runner, topology};
use record::{FORMAT, Manifest, Row, RunDir, Status, Writer};

/// A manifest of nothing in particular.
pub fn manifest() -> Manifest {
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

/// How a run ended, its record, and what happened in its world.
pub type Ran = (Result<Vec<Row>, lab::Error>, RunDir, world::Trace);

/// A plan in the sizes of virtual time.
pub fn resolved(plan: &Plan, scale: f64) -> Resolved {
    plan.resolve(scale, |_, _| Ok(())).unwrap()
}

/// Runs a plan in a world where one thing is done wrong, if any.
pub fn run(plan: Resolved, planted: Option<&'static str>) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let to = path.clone();
    let world = move || {
        world::virtual_world::run_traced(5, async move |env| {
            planted.into_iter().for_each(|fault| env.plant(fault));
            let mut writer = Writer::create(&to, &manifest()).unwrap();
            let mut target = VirtualClusters::new(&env);
            target.start(&topology(&plan)).await.unwrap();
            let rows = Runner::new(&env, &plan, &mut target, &mut writer, &Quiet).run().await;
            target.stop().await;
            rows
        })
    };
    // Without optimisation a step of all that is nested here needs more than a test's thread has.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let ran = thread.spawn(world).unwrap().join();
    let (rows, trace) = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).unwrap();
    (rows, RunDir::open(&path).unwrap(), trace)
}
