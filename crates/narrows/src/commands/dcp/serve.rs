//! `narrows dcp serve`

use std::path::PathBuf;
use std::time::Duration;

use dcp::bucket::{Bucket, BucketSettings, vbucket_of};
use dcp::codec::{Status, Write as Document};
use dcp::consumer::ConsumerKind;
use dcp::server::{Server, ServerSettings};
use dcp::wire::PacketListener;
use record::units::parse_size;
use world::Env;

use crate::interrupt::until_told;
use crate::live::user_and_password;
use crate::terminal::{self, say};

/// A bucket that has had no memory for so long takes no further document.
const MEMORY_PATIENCE: Duration = Duration::from_secs(60);
/// The least memory of a bucket, as in plans.
const MIN_QUOTA_BYTES: u64 = 1 << 20;
/// The largest document that can be made.
const MAX_ITEM_BYTES: u64 = 20 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The port, on loopback. 0: any that is free.
    #[arg(long, default_value_t = 11210)]
    port: u16,
    /// The bucket's name.
    #[arg(long, value_name = "NAME", default_value = "example")]
    bucket: String,
    /// How many vbuckets.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..=1024))]
    vbuckets: u16,
    /// The memory that the bucket may use; 1mb at least.
    #[arg(long, value_name = "SIZE", default_value = "256mb", value_parser = quota)]
    quota: u64,
    /// Documents to begin with.
    #[arg(long, value_name = "N", default_value_t = 0)]
    items: u64,
    /// The size of each.
    #[arg(long, value_name = "SIZE", default_value = "1kb", value_parser = item_size, requires = "items")]
    item_size: u64,
    /// How it takes streams in, where others stream to it: message by message as servers do, what came together at
    /// once, or `fast`, a measuring device that counts mutations, keeps none, and says that all are persisted.
    #[arg(long, value_enum, default_value_t = Kind::Mainstream)]
    consumer: Kind,
    /// A TOML file with `user = "..."` and `password = "..."`, readable by nobody else, that clients must know. Without
    /// it, NARROWS_USER and NARROWS_PASSWORD of the environment count.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Where data is kept between starts; without it, it goes with the server.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Mainstream,
    Batching,
    Fast,
}

fn quota(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let wrong = || "a bucket has at least 1mb; write for example 64mb".to_owned();
    Some(bytes).filter(|bytes| *bytes >= MIN_QUOTA_BYTES).ok_or_else(wrong)
}

fn item_size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).map_err(|error| error.to_string())?;
    match size <= MAX_ITEM_BYTES {
        true => Ok(size),
        false => Err(format!("a document has at most {MAX_ITEM_BYTES} bytes")),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let found = clusters::Credentials::read(args.credentials.as_deref());
    let user = user_and_password(found.map_err(crate::live::usage)?)?;
    let mut temporary = None;
    world::real_world::run(0, async |env| {
        let mut open = None;
        // It listens before anything is made that somebody has to take away.
        let ended = until_told(async {
            let dir = match &args.data {
                Some(dir) => dir.clone(),
                None => temporary.insert(clusters::TemporaryDir::make()?).path().join("bucket"),
            };
            let listener = PacketListener::bind(&env, &format!("127.0.0.1:{}", args.port)).await;
            let listener =
                listener.map_err(|error| anyhow::anyhow!("{error}; --port chooses another"))?;
            let settings = BucketSettings::new(&args.bucket, args.vbuckets, args.quota);
            let bucket = open.insert(Bucket::open(&env, settings, &dir).await?);
            fill(&env, bucket, args).await?;
            let consumer = match args.consumer {
                Kind::Mainstream => ConsumerKind::Mainstream,
                Kind::Batching => ConsumerKind::Batching,
                Kind::Fast => ConsumerKind::Fast,
            };
            let settings = ServerSettings { users: vec![user], consumer };
            let server = Server::start(&env, listener, vec![bucket.clone()], settings)?;
            writeln!(terminal::out(), "couchbase://{}/{}", server.address(), args.bucket)?;
            if consumer == ConsumerKind::Fast {
                say!(
                    "--consumer fast is a measuring device: what is streamed to this server is counted and lost"
                );
            }
            say!("ready; Ctrl-C stops it");
            std::future::pending::<()>().await;
            drop(server);
            Ok(())
        });
        let ended = ended.await;
        let closed = match open {
            Some(bucket) => {
                say!("stopping");
                bucket.close().await
            }
            None => Ok(()),
        };
        // Where something failed before, that is why.
        ended?;
        Ok(closed?)
    })
}

/// Documents of random bytes, and waits until they are on disk.
async fn fill(env: &Env, bucket: &Bucket, args: &Args) -> anyhow::Result<()> {
    for n in 0..args.items {
        let key = format!("item-{n:012}");
        let vb = vbucket_of(key.as_bytes(), args.vbuckets);
        let mut value = vec![0; args.item_size as usize];
        for part in value.chunks_mut(8) {
            part.copy_from_slice(&env.random_u64().to_le_bytes()[..part.len()]);
        }
        let write = Document { flags: 0, expiry: 0, key: key.into(), value: value.into() };
        match bucket.write_within(vb, write, MEMORY_PATIENCE).await {
            Ok(_) => {}
            Err(Status::TemporaryFailure | Status::NoMemory) => anyhow::bail!(
                "the bucket has no memory for document {n} of {}: give a larger --quota, or fewer --items",
                args.items
            ),
            Err(status) => anyhow::bail!("document {n} was refused: {}", status.name()),
        }
        if n % 1024 == 0 {
            // The flusher has its turn.
            env.sleep(Duration::from_micros(1)).await;
        }
    }
    Ok(bucket.wait_all_persisted(Duration::from_secs(600)).await?)
}
