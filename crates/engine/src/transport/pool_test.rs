//! Peers that are forgotten, too large a message, a panic at the other end, and builds of two versions.

use bytes::Bytes;
use world::{Frame, MAX_HEAD_BYTES, MAX_TAIL_BYTES, Message};

use super::*;
use crate::transport::{SourcePhases, WIRE_VERSION, WireChunk};

/// Zeros take no memory until they are copied.
fn zeros(bytes: usize) -> Response {
    Response::Chunk(Box::new(WireChunk {
        chunk: store::Chunk::Bytes(Bytes::from(vec![0; bytes])),
        crc32c: 0,
        plain_len: None,
        wire_len: bytes as u64,
        phases: SourcePhases::default(),
        pressure: false,
    }))
}

async fn answer(request: Request) -> Result<Reply> {
    assert!(!matches!(request, Request::State), "nobody knows a state here");
    let is_large = matches!(request, Request::Probe);
    Ok(Reply::from(if is_large { zeros(MAX_TAIL_BYTES + 1) } else { Response::Done }))
}

async fn serve_at_any(env: &Env) -> (String, Task<()>) {
    serve_and_warn(env, Rc::new(|_: &str| ())).await
}

async fn serve_and_warn(env: &Env, warn: Warn) -> (String, Task<()>) {
    let listener = env.listen::<Envelope>(&env.any_address()).await.unwrap();
    let address = listener.address().to_owned();
    let at_once = |_: &Request| -> Option<Response> { None };
    let handlers = Handlers { at_once, in_time: answer, warn };
    let serving = serve(env.clone(), NetworkPartition::default(), listener, handlers);
    (address, env.spawn("serves", serving))
}

/// What a build says and reads whose version is one more.
struct OfLaterBuild(Envelope);

impl Message for OfLaterBuild {
    fn encode(self) -> Frame {
        let mut frame = self.0.encode();
        frame.head[1] += 1;
        frame
    }

    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self> {
        let mut head = head.to_vec();
        head[1] -= 1;
        Envelope::decode(&head, tail).map(OfLaterBuild)
    }

    fn wire_bytes(&self) -> u64 {
        self.0.wire_bytes()
    }
}

/// Whoever asks, both sides say why they do not understand each other.
#[test]
fn builds_of_two_versions_refuse_each_other_by_name() {
    world::real_world::run(7, async |env| {
        let said: Rc<RefCell<Vec<String>>> = Rc::default();
        let warn: Warn = {
            let said = said.clone();
            Rc::new(move |words: &str| said.borrow_mut().push(words.to_owned()))
        };
        let (address, _serving) = serve_and_warn(&env, warn.clone()).await;
        let mut later = env.connect::<OfLaterBuild>(&address).await.unwrap();
        let question = || Envelope::Request(1, Request::Ping);
        later.sender.send(OfLaterBuild(question())).await.unwrap();
        let refused = later.receiver.recv().await.map(drop).unwrap_err();
        assert!(is_other_version(&refused), "{refused}");

        let mut listener = env.listen::<OfLaterBuild>(&env.any_address()).await.unwrap();
        let address = listener.address().to_owned();
        let _later = env.spawn("is of a later build", async move {
            let mut asks = listener.accept().await.unwrap();
            assert!(is_other_version(&asks.receiver.recv().await.map(drop).unwrap_err()));
            let answer = Envelope::Response(0, Ok(Response::Done));
            asks.sender.send(OfLaterBuild(answer)).await.unwrap();
        });
        let pool = Pool::that_warns(env.clone(), warn);
        let asked =
            pool.call(&address, Class::Control, Request::Ping, Duration::from_secs(60)).await;
        let refused = asked.map(drop).unwrap_err().to_string();
        let later = format!("speaks version {} of the protocol", WIRE_VERSION + 1);
        assert!(refused.contains(&later), "{refused}");
        while said.borrow().len() < 2 {
            env.sleep(Duration::from_millis(1)).await;
        }
        let all = said.borrow();
        assert!(all.iter().all(|words| words.contains(&later)), "{all:?}");
    });
}

#[test]
fn an_address_is_forgotten_with_its_last_connection() {
    world::real_world::run(7, async |env| {
        let pool = Pool::new(env.clone());
        let limit = Duration::from_secs(60);
        let (stays, _serving) = serve_at_any(&env).await;
        pool.call(&stays, Class::Control, Request::Ping, limit).await.unwrap();
        for _ in 0..3 {
            let (address, serving) = serve_at_any(&env).await;
            pool.call(&address, Class::Control, Request::Ping, limit).await.unwrap();
            serving.cancel().await;
            while pool.open_channel(&address, Class::Control).is_some() {
                env.sleep(Duration::from_millis(1)).await;
            }
        }
        let addresses = pool.inner.channels.borrow().len();
        assert!(pool.knows(&stays) && addresses <= 2, "{addresses} addresses are known");
    });
}

#[test]
fn a_message_that_is_too_large_is_refused_by_name_and_the_connection_goes_on() {
    world::real_world::run(7, async |env| {
        let (address, _serving) = serve_at_any(&env).await;
        let pool = Pool::new(env.clone());
        let ask = async |request| {
            pool.call(&address, Class::Control, request, Duration::from_secs(60)).await
        };
        assert!(matches!(ask(Request::Ping).await, Ok(Response::Done)));
        let before = pool.open_channel(&address, Class::Control).unwrap();
        let question = String::from_utf8(vec![0; MAX_HEAD_BYTES]).unwrap();
        for request in [Request::Probe, Request::Dangling(question)] {
            let Err(CallError::Failed(refused)) = ask(request).await else {
                panic!("it is refused")
            };
            assert_eq!(refused.status, 413, "{refused}");
            assert!(refused.reason.contains("too large to send"), "{refused}");
        }
        assert!(matches!(ask(Request::Ping).await, Ok(Response::Done)));
        let after = pool.open_channel(&address, Class::Control).unwrap();
        assert!(Rc::ptr_eq(&before, &after));
    });
}

/// In a process of a library, which goes on: whoever asks would wait for as long as a recovery may.
#[test]
fn a_question_whose_answer_panics_is_answered_with_that() {
    world::real_world::run(7, async |env| {
        let (address, _serving) = serve_at_any(&env).await;
        let pool = Pool::new(env.clone());
        let limit = Duration::from_secs(60);
        let asked = pool.call(&address, Class::Control, Request::State, limit).await;
        let Err(CallError::Failed(said)) = asked else { panic!("it is answered") };
        assert!(said.status == 503 && said.reason.contains("nobody knows a state"), "{said}");
        let asked = pool.call(&address, Class::Control, Request::Ping, limit).await;
        assert!(matches!(asked, Ok(Response::Done)));
    });
}
