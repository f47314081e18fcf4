//! A binary of its own: its tests need other people's clients, which are not on every machine.

mod capture;
#[path = "../it/common/mod.rs"]
mod common;
mod peers;

testbed::main! {
    peers::gocbcore_streams_everything [GO],
    peers::gomemcached_streams_everything [GO],
    peers::couchbases_java_client_streams_everything [JAVA, MAVEN],
    peers::our_consumer_reads_a_producer_on_another_codec [GO],
    peers::pythons_couchbase_writes_reads_and_deletes [COUCHBASE_PY],
    peers::tshark_finds_nothing_malformed [TSHARK],
}
