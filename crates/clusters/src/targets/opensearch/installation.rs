//! OpenSearch's jars and the class that starts a node, from Maven Central or from an unpacked distribution.
//!
//! The first use of a release fetches its jars with the ordinary `mvn` client, as `pom.xml` lists them, compiles
//! `OpenSearchNode.java`, and keeps both in the user's cache directory. Later uses need no `mvn`. Beside them lies what
//! Java makes of the classes when a node has started once (a dynamic class-data archive): with it a node starts in half
//! of the time and of the core time.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use machine::Java;
use tokio::process::Command;
use world::Env;
use xxhash_rust::xxh3::xxh3_64;

use super::release::{Dialect, ELASTICSEARCH, Release, SECURITY_PLUGIN};
use crate::nodes::TemporaryDir;
use crate::{Error, Result, credentials};

/// A file of a node: its key, and the certificates that it trusts.
pub(super) const KEY_STORE: &str = "keys.p12";
/// No secret: nobody else may read that file. It is the one that Java and the plugin take where none is given.
const KEY_STORE_PASSWORD: &str = "changeit";
/// What makes such a file: a key, and its certificate once more, among those that are trusted.
const KEYTOOL: [&str; 3] = [
    "-genkeypair -alias node -keyalg RSA -keysize 2048 -dname CN=narrows -validity 30",
    "-exportcert -alias node -file node.crt",
    "-importcert -alias trusted -file node.crt -noprompt",
];
const POM: &str = include_str!("pom.xml");
const NODE_SOURCE: &str = include_str!("OpenSearchNode.java");
/// The oldest Java for a distribution without its own.
const JAVA_OLDEST: u32 = 11;
/// The oldest Java that archives the classes of an application when it ends (JEP 350).
const ARCHIVES_OLDEST: u32 = 13;
/// How long a node may take that is started for its classes alone.
const ARCHIVE_PATIENCE: Duration = Duration::from_secs(120);
/// What fetches a plugin, which is no jar that a pom could list: as `pom.xml` has it for the jars.
const UNPACK: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:unpack";
/// Where an unpacked distribution has the plugin that encrypts.
const SECURITY_OF_HOME: &str = "plugins/opensearch-security";
/// Lines of a failed build that are shown.
const BUILD_LINES: usize = 12;

/// Everything that is needed to start nodes.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    java: PathBuf,
    /// Arguments of Java that are the same for every node: class path and class.
    arguments: Vec<OsString>,
    /// The option by which Java reads what it has made of the classes, where it could.
    archive: Option<OsString>,
    /// An unpacked distribution's directory.
    pub(super) home: Option<PathBuf>,
    pub(super) dialect: Dialect,
}

impl Installation {
    /// A release, from the cache; fetched and compiled where it is not there yet.
    pub(super) async fn from_maven(env: &Env, release: &Release) -> Result<Installation> {
        let java = java(None, release.java_oldest, release.java.remedy).await?;
        let dialect = release.dialect;
        let dir = made_cache_dir()?.join(release_name(release));
        if !is_whole(&dir) {
            build(&dir, release, &java.path).await?;
        }
        let arguments = arguments(&dir, release.plugins(), None);
        let path = java.path.clone();
        let made = Installation { java: path, arguments, archive: None, home: None, dialect };
        made.with_archive(env, &dir, &java).await
    }

    /// Has nodes read the archive of classes for a Java, which is made where it is not there yet. They start without it
    /// where that Java makes none, where it cannot be kept, where another run makes it just now, and where no node
    /// started: who starts one for good is told why.
    async fn with_archive(mut self, env: &Env, dir: &Path, java: &Java) -> Result<Installation> {
        // Java refuses one that another build has made.
        let build = xxh3_64(java.build.as_bytes()) as u32;
        let archive = dir.join(format!("java-{}-{build:08x}.jsa", java.version));
        let io = |source| Error::Io { what: "keep Java's classes in", path: dir.into(), source };
        let lock = File::open(dir).map_err(io)?;
        if !archive.is_file() && java.version >= ARCHIVES_OLDEST && lock.try_lock().is_ok() {
            let fresh = dir.join("fresh.jsa");
            // A run that was killed may have left a part of one.
            let _ = std::fs::remove_file(&fresh);
            // Java finds out at the end whether it may write there. An empty one says that it makes none.
            if File::create(&fresh).is_ok() {
                let is_done = self.train(env, &fresh).await;
                let kept = matches!(is_done, Ok(true)).then(|| std::fs::rename(&fresh, &archive));
                if !matches!(kept, Some(Ok(()))) {
                    let _ = std::fs::remove_file(&fresh);
                }
                is_done?;
            }
        }
        if archive.metadata().is_ok_and(|found| found.len() > 0) {
            self.archive = Some(option("-XX:SharedArchiveFile=", &archive));
        }
        Ok(self)
    }

    /// Starts a node and stops it, after which Java writes its archive; answers whether that ended well.
    async fn train(&self, env: &Env, archive: &Path) -> Result<bool> {
        let archive = Some(option("-XX:ArchiveClassesAtExit=", archive));
        let trained = Installation { archive, ..self.clone() };
        let work = TemporaryDir::make()?;
        let io = |source| Error::Io { what: "write to", path: work.path().to_owned(), source };
        for name in ["config", "tmp"] {
            std::fs::create_dir(work.path().join(name)).map_err(io)?;
        }
        let own = work.path().display();
        let settings = format!(
            "node.name=n\npath.home={own}\npath.data={own}/data\npath.logs={own}/logs\n\
             network.host=127.0.0.1\nhttp.port=0\ntransport.port=0\ndiscovery.type=single-node\n\nstop\n"
        );
        let input = work.path().join("input");
        std::fs::write(&input, settings).map_err(io)?;
        let mut command = trained.command("512m", work.path(), None);
        command.stdin(File::open(&input).map_err(io)?);
        let ended = env.timeout(ARCHIVE_PATIENCE, run(&mut command, "java")).await;
        Ok(matches!(ended, Ok(Ok(output)) if output.status.success()))
    }

    /// The same with the plugin by which nodes encrypt what they send each other, which is fetched where it is not
    /// there yet. Fails where none is known for the release, or the distribution has none.
    pub(super) async fn encrypting(&self, release: &Release) -> Result<Installation> {
        let none = |name: String| Error::NoEncryption { name };
        if let Some(home) = &self.home {
            let is_there = home.join(SECURITY_OF_HOME).is_dir();
            return if is_there { Ok(self.clone()) } else { Err(none(home.display().to_string())) };
        }
        let version = release.security.ok_or_else(|| none(release.whole_name()))?;
        let cache = made_cache_dir()?;
        let dir = cache.join(format!("opensearch-security-{version}"));
        if !dir.is_dir() {
            let zip = format!("-Dartifact=org.opensearch.plugin:opensearch-security:{version}:zip");
            let work = made_work_dir(&dir)?;
            let mut unpack = Command::new("mvn");
            unpack.args(["-q", "-B", UNPACK, &zip, "-DoutputDirectory=target"]);
            built_in(&work, unpack, &self.java, &dir).await?;
        }
        let plugins = release.plugins().chain([SECURITY_PLUGIN]);
        let arguments = arguments(&cache.join(release_name(release)), plugins, Some(&dir));
        Ok(Installation { arguments, ..self.clone() })
    }

    /// Makes a key store of a key and of the one certificate that is trusted, its own, with the tool that comes with
    /// Java.
    pub(super) async fn keys(&self, below: &Path) -> Result<Vec<u8>> {
        let io = |source| Error::Io { what: "make a key store in", path: below.to_owned(), source };
        // Nobody else may look into it.
        let dir = tempfile::tempdir_in(below).map_err(io)?;
        for arguments in KEYTOOL {
            let mut keytool = Command::new(self.java.with_file_name("keytool"));
            keytool.args(arguments.split(' ')).args(["-storetype", "PKCS12", "-keystore"]);
            keytool.args([KEY_STORE, "-storepass", KEY_STORE_PASSWORD]);
            keytool.current_dir(dir.path()).stdin(Stdio::null());
            let output = run(&mut keytool, "keytool").await;
            let output = output.map_err(|said| Error::NoKeys { said })?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said).trim().to_owned();
                return Err(Error::NoKeys { said });
            }
        }
        std::fs::read(dir.path().join(KEY_STORE)).map_err(io)
    }

    /// What [`from_maven`](Self::from_maven) has to fetch, in a sentence; none where it is in the cache.
    pub(super) fn to_fetch(release: &Release) -> Option<String> {
        if built(release).is_some() {
            return None;
        }
        Some(format!(
            "{} is not in {} yet: mvn fetches it from Maven Central and compiles the class that starts its nodes. That is \
             done once and takes one to five minutes, in which nothing is heard of it.",
            release.whole_name(),
            cache_dir()?.display()
        ))
    }

    /// An unpacked distribution of any release, with its own Java where it has one. That Java compiles the
    /// class that starts a node at each start, so it needs to be a development kit, as the bundled one is.
    pub(super) async fn from_home(home: &Path) -> Result<Installation> {
        let lib = home.join("lib");
        let dialect = Dialect::of_home(&lib).filter(|_| home.join("modules").is_dir());
        let no_distribution = || Error::NoDistribution { home: home.to_owned() };
        let dialect = dialect.ok_or_else(no_distribution)?;
        let java = java(Some(home), JAVA_OLDEST, Release::standard().java.remedy).await?;
        let source = made_cache_dir()?.join(format!("{}.java", cache_name("node", dialect)));
        write(&source, &node_source(dialect))?;
        let arguments = vec!["-cp".into(), lib.join("*").into_os_string(), source.into()];
        let (java, home) = (java.path, Some(home.to_owned()));
        Ok(Installation { java, arguments, archive: None, home, dialect })
    }

    /// A command that starts a node with a heap of `heap`; it writes to the directory `own`, and removes it. In a mount
    /// namespace, it has what is mounted there.
    pub(super) fn command(&self, heap: &str, own: &Path, namespace: Option<&Path>) -> Command {
        let mut command = Command::new(&self.java);
        if let Some(namespace) = namespace {
            // It goes on as Java, with the same process id.
            command = Command::new("nsenter");
            command.arg(option("--mount=", namespace)).arg(option("--wd=", own)).arg(&self.java);
        }
        command
            .arg(format!("-Xms{heap}"))
            .arg(format!("-Xmx{heap}"))
            .args(["-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8"])
            .args(["-Dlog4j2.disable.jmx=true", "-Dlog4j.shutdownHookEnabled=false"])
            // Standard output is for the line that says that a node is ready.
            .args(["-Xlog:disable", "-Xlog:all=warning:stderr"])
            .args(&self.archive)
            .arg(option("-Djava.io.tmpdir=", &own.join("tmp")))
            .arg(option("-Dnarrows.remove=", own))
            .current_dir(own);
        // Jars of Maven Central do not know how they were packed, and Elasticsearch's own clients from 7.14 on refuse a
        // node that does not say this.
        if self.home.is_none() && self.dialect.package == ELASTICSEARCH {
            command.arg("-Des.distribution.flavor=default");
        }
        command.args(&self.arguments);
        command
    }
}

/// An option of Java with a path.
fn option(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push(path);
    text
}

/// Arguments of Java for nodes from a directory of the cache, with a directory of more jars.
fn arguments<'a>(
    dir: &Path,
    plugins: impl Iterator<Item = &'a str>,
    more: Option<&Path>,
) -> Vec<OsString> {
    let mut class_path = dir.join("lib").join("*").into_os_string();
    if let Some(jars) = more {
        class_path.push(":");
        class_path.push(jars.join("*"));
    }
    let plugins = format!("-Dnarrows.plugins={}", plugins.collect::<Vec<_>>().join(","));
    vec![plugins.into(), "-cp".into(), class_path, "narrows.OpenSearchNode".into()]
}

/// The class that starts a node, in the names of a flavour.
fn node_source(dialect: Dialect) -> String {
    NODE_SOURCE.replace(Release::standard().dialect.package, dialect.package)
}

/// The name of an entry of the cache: it changes with the pom and the class.
fn cache_name(what: &str, dialect: Dialect) -> String {
    let hash = xxh3_64([POM, &node_source(dialect)].concat().as_bytes());
    format!("{what}-{:08x}", hash as u32)
}

/// The entry of a release.
fn release_name(release: &Release) -> String {
    cache_name(&release.whole_name(), release.dialect)
}

/// Whether an entry of a release holds all that it needs.
fn is_whole(dir: &Path) -> bool {
    dir.join("lib").is_dir()
}

/// Where a release has been built; none where it has yet to be fetched.
pub(super) fn built(release: &Release) -> Option<PathBuf> {
    cache_dir().map(|dir| dir.join(release_name(release))).filter(|dir| is_whole(dir))
}

/// `NARROWS_CACHE`, or `narrows` in the user's cache directory; none where nothing says where that is.
pub(super) fn cache_dir() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = variable("NARROWS_CACHE").map(PathBuf::from);
    let user = || variable("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("narrows"));
    let home = || variable("HOME").map(|dir| PathBuf::from(dir).join(".cache/narrows"));
    own.or_else(user).or_else(home)
}

fn made_cache_dir() -> Result<PathBuf> {
    let dir = cache_dir().ok_or(Error::NoCache)?;
    std::fs::create_dir_all(&dir).map_err(|source| Error::Io {
        what: "make the cache directory",
        path: dir.clone(),
        source,
    })?;
    Ok(dir)
}

/// Writes a file whole or not at all: a node of another run may be reading it just now.
fn write(path: &Path, text: &str) -> Result<()> {
    let io = |source| Error::Io { what: "write", path: path.to_owned(), source };
    let parent = path.parent().expect("it lies in a directory");
    std::fs::create_dir_all(parent).map_err(io)?;
    let readable = Permissions::from_mode(0o644);
    let mut fresh =
        tempfile::Builder::new().permissions(readable).tempfile_in(parent).map_err(io)?;
    fresh.write_all(text.as_bytes()).map_err(io)?;
    fresh.persist(path).map(drop).map_err(|error| io(error.error))
}

/// The Java to use; a JVM may take seconds to say its version, so it is asked on a thread of its own.
async fn java(home: Option<&Path>, oldest: u32, install: &'static str) -> Result<Java> {
    let home = home.map(Path::to_owned);
    let asked = tokio::task::spawn_blocking(move || machine::java(home.as_deref(), oldest));
    let found = asked.await.unwrap_or_else(|error| Err(error.to_string()));
    let missing =
        |found: String| Error::Missing { what: "Java", found, install, oldest: oldest.to_string() };
    found.map_err(missing)
}

/// Runs a command to its end; the error is why it could not be started.
async fn run(command: &mut Command, name: &str) -> Result<Output, String> {
    // Plugins of others run in it, and have no business with a cluster.
    for name in credentials::VARIABLES {
        command.env_remove(name);
    }
    let output = command.kill_on_drop(true).output().await;
    output.map_err(|error| machine::why_not_started(name, &error))
}

/// Downloads and compiles in a directory of its own.
async fn build(dir: &Path, release: &Release, java: &Path) -> Result<()> {
    let work = made_work_dir(dir)?;
    write(&work.path().join("pom.xml"), POM)?;
    let source = node_source(release.dialect);
    write(&work.path().join("src/main/java/narrows/OpenSearchNode.java"), &source)?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "compile"]);
    let [group, artifact, version] = release.artifact;
    maven.arg(format!("-Drunner.group={group}")).arg(format!("-Drunner.artifact={artifact}"));
    maven.arg(format!("-Drunner.version={version}"));
    maven.args(release.geo.map(|version| format!("-Dgeo.version={version}")));
    built_in(&work, maven, java, dir).await
}

/// A directory for what is to become the entry `dir` of the cache.
fn made_work_dir(dir: &Path) -> Result<TemporaryDir> {
    let path = dir.parent().expect("it lies in the cache");
    let io = |source| Error::Io { what: "make a directory in", path: path.to_owned(), source };
    TemporaryDir::make_in(path).map_err(io)
}

/// Runs Maven in `work`, and moves the result to `dir`, so that `dir` is always complete.
async fn built_in(work: &TemporaryDir, mut maven: Command, java: &Path, dir: &Path) -> Result<()> {
    maven.current_dir(work.path()).stdin(Stdio::null());
    // The compiler must be able to read the jars, so it needs the Java that they need.
    if let Some(home) = java.parent().and_then(Path::parent).filter(|_| java.is_absolute()) {
        maven.env("JAVA_HOME", home);
    }
    let output = run(&mut maven, "mvn").await.map_err(|found| Error::Missing {
        what: "Maven",
        found,
        install: machine::MAVEN.remedy,
        oldest: "3.6".to_owned(),
    })?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let lines = said.lines().filter(|line| !line.trim().is_empty()).take(BUILD_LINES);
        return Err(Error::Build { lines: lines.map(str::to_owned).collect() });
    }
    let made = work.path().join("target");
    match std::fs::rename(&made, dir) {
        // Another run was faster; its result is the same.
        Err(_) if dir.is_dir() => Ok(()),
        result => result.map_err(|source| Error::Io {
            what: "move what was built to",
            path: dir.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flavour_has_its_own_class_and_its_own_place() {
        let name = |release: &str| {
            let release = Release::named(release).unwrap();
            cache_name(&release.whole_name(), release.dialect)
        };
        assert!(name("2.19.1").starts_with("opensearch-2.19.1-"));
        assert!(name("elasticsearch-7.10.2").starts_with("elasticsearch-7.10.2-"));
        let elasticsearch = Release::named("elasticsearch-7.10.2").unwrap().dialect;
        let source = node_source(elasticsearch);
        assert!(source.contains("import org.elasticsearch.node.Node;"));
        assert!(!source.contains("org.opensearch"));
    }

    /// `true` and `false` stand for a Java that makes no archive, and for one whose node does not start.
    #[test]
    fn an_archive_that_cannot_be_made_leaves_nothing_and_a_java_without_one_is_asked_once() {
        let kept = |program: &'static str, is_taken: bool| {
            world::real_world::run(1, async move |env| {
                let dir = tempfile::tempdir().unwrap();
                let fresh = dir.path().join("fresh.jsa");
                if is_taken {
                    std::fs::create_dir(&fresh).unwrap();
                }
                let java = Java { path: program.into(), version: 17, build: "17".to_owned() };
                let (java_path, dialect) = (java.path.clone(), Release::standard().dialect);
                let (arguments, archive, home) = (Vec::new(), None, None);
                let made = Installation { java: java_path, arguments, archive, home, dialect };
                let made = made.with_archive(&env, dir.path(), &java).await.unwrap();
                assert_eq!(made.archive, None);
                let names = std::fs::read_dir(dir.path()).unwrap();
                let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                names.map(|name| name[..4].to_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(kept("true", false), ["java"]);
        assert_eq!(kept("false", false), [""; 0]);
        assert_eq!(kept("true", true), ["fres"], "nothing was moved there");
    }

    #[test]
    fn what_builds_a_release_is_given_no_credentials() {
        let output = world::real_world::run(1, async |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo \"$NARROWS_PASSWORD\""]).env("NARROWS_PASSWORD", "hush");
            run(&mut command, "sh").await.unwrap()
        });
        assert_eq!(output.stdout, b"\n");
    }

    #[test]
    fn who_reads_a_file_that_is_written_again_has_the_whole_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.java");
        write(&path, "class").unwrap();
        let mut opened = std::fs::File::open(&path).unwrap();
        write(&path, "").unwrap();
        assert_eq!(std::io::read_to_string(&mut opened).unwrap(), "class");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_is_no_distribution_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let refused = world::real_world::run(1, async |_| {
            Installation::from_home(dir.path()).await.unwrap_err()
        });
        assert!(refused.is_usage());
        assert!(refused.to_string().contains("lib and modules"), "{refused}");
    }
}
