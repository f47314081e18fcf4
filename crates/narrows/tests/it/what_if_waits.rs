//! What copies of a twin wait for besides their bytes.

use crate::common::{entries, failed};
use crate::what_if::{ALONE, Twin, green_s};

/// What makes it the twin of a cluster of the field.
const OF_OPENSEARCH: (&str, &str) = ("steps", "test_bed = \"opensearch-2\"\nsteps");

/// Of c's two copies one goes from b to a, and the other, a primary, from c itself to b.
#[test]
fn a_copy_from_a_node_that_hears_last_waits_until_that_knows_it() {
    let empty_with = |node: &str| {
        let rows = format!(
            "\"recovery.unlisted_copy\" = {{ value = \"5s\", source = \"assumed\" }}\n\n[settings]\n\
             \"narrows.recovery.hears_last._name\" = \"{node}\"\n"
        );
        let twin = Twin::with(&[("\"10mb\"", "\"400mb\""), ("\n[settings]\n", &rows)]);
        green_s(&twin.first("--drain c"))
    };
    let (none, replica, primary) = (empty_with("a"), empty_with("b"), empty_with("c"));
    assert!((4.5..5.5).contains(&(replica - none)), "{none} s, {replica} s");
    assert!((0.2..0.7).contains(&(primary - none)), "it asks again: {none} s, {primary} s");
}

/// c's primary goes to b, and asks again after half a second.
#[test]
fn a_primary_that_moves_may_ask_before_its_node_knows_of_it() {
    let empty_with = |share: &str, manager: &str| {
        let rows = format!(
            "\"recovery.unmarked_share\" = {{ value = \"{share}\", source = \"assumed\" }}\n\n[settings]\n\
             \"narrows.recovery.hears_last._name\" = \"{manager}\"\n"
        );
        let twin = Twin::with(&[("\"10mb\"", "\"400mb\""), ("\n[settings]\n", &rows)]);
        green_s(&twin.first("--drain c"))
    };
    let [none, all, last] =
        [("0", "a"), ("1", "a"), ("1", "b")].map(|(share, manager)| empty_with(share, manager));
    assert!((0.2..0.7).contains(&(all - none)), "{none} s, {all} s");
    assert!((last - none).abs() < 0.1, "b is the last that hears of it: {none} s, {last} s");
}

/// Each of c's two copies has 41 small files, of which two are on their way at once, before the eight whose bytes the
/// limit holds. Between those they cost no time.
#[test]
fn round_trips_of_small_files_come_before_what_the_limit_holds_as_in_the_field() {
    let empty_with = |first: &str| {
        let setting = format!("[settings]\n\"narrows.recovery.smallest_first\" = \"{first}\"\n");
        let twin = Twin::with(&[("\"10mb\"", "\"1mb\""), ("[settings]\n", &setting)]);
        green_s(&twin.first("--drain c --rtt 200ms"))
    };
    let (smallest_first, by_name) = (empty_with("true"), empty_with("false"));
    let longer_s = smallest_first - by_name;
    assert!((2.5..5.5).contains(&longer_s), "{smallest_first} s, {by_name} s");
}

/// The list of files, the lease that another copy hears of, the end of files, and a batch without operations. And the
/// first chunks, which are not asked for with the session.
#[test]
fn steps_of_the_field_take_a_round_trip_each() {
    let empty_with = |steps: &str| {
        let setting = format!("[settings]\n\"narrows.recovery.step_by_step\" = \"{steps}\"\n");
        let twin = Twin::with(&[("\"10mb\"", "\"400mb\""), ("[settings]\n", &setting)]);
        [200, 0].map(|rtt_ms| green_s(&twin.first(&format!("--drain c --rtt {rtt_ms}ms"))))
    };
    let ([all, all_here], [fewer, fewer_here]) = (empty_with("true"), empty_with("false"));
    let longer_s = all - fewer;
    assert!((0.75..1.25).contains(&longer_s), "{all} s, {fewer} s");
    assert!((all_here - fewer_here).abs() < 0.05, "{all_here} s, {fewer_here} s");
}

/// Each of c's two copies has a list of segments, and eight of six files each, or of three, or one of six.
#[test]
fn each_file_of_a_copy_takes_what_is_said_besides_its_bytes() {
    let longer_by_s = |changes: &[(&str, &str)]| {
        let twin = Twin::with(&[&[("\"10mb\"", "\"400mb\"")][..], changes].concat());
        let [some, none] = ["100ms", "0s"].map(|each| {
            green_s(&twin.first(&format!("--drain c --open-copy 100ms --each-file {each}")))
        });
        some - none
    };
    let row = "[virtual]\n\"recovery.compound_files\" = { value = \"on\", source = \"assumed\" }";
    let all = [vec![], vec![("[virtual]", row)], vec![("segments = 8", "segments = 1"); 3]];
    let longer_s = all.map(|changes| longer_by_s(&changes));
    for (longer_s, expected_s) in longer_s.into_iter().zip([4.9, 2.5, 0.7]) {
        assert!((longer_s - expected_s).abs() < 0.2, "{longer_s} s, and not {expected_s} s");
    }
}

/// Two copies of 30 MB go to two nodes, two chunks of each at a time. At 5 MB/s a chunk is compressed in a tenth of a
/// second, and its reverse takes a tenth of that or as long.
#[test]
fn copies_take_what_compression_is_calibrated_to_cost() {
    let longer_by_s = |speedup: &str| {
        let rows = format!(
            "[virtual]\n\"cores.lz4_bytes_per_s\" = {{ value = \"5MB/s\", source = \"measured\" }}\n\
             \"cores.decompress_speedup\" = {{ value = \"{speedup}\", source = \"measured\" }}"
        );
        let twin = Twin::with(&[("\"10mb\"", "\"400mb\""), ("[virtual]", &rows)]);
        let found = twin.answer("--drain c --set transport.compress=true");
        let [plain, compressed] = [0, 1].map(|place| green_s(&found["answers"][place]));
        compressed - plain
    };
    let (fast, slow) = (longer_by_s("10"), longer_by_s("1"));
    assert!((2.5..7.5).contains(&fast), "{fast} s");
    assert!((1.5..7.5).contains(&(slow - fast)), "{fast} s, {slow} s");
}

/// A chunk is checked where it is sent, where it arrives and while it is written; and a copy that comes back to its
/// files is where that is asked for, 30 MB at 20 MB/s.
#[test]
fn copies_take_what_a_checksum_is_calibrated_to_cost() {
    let row =
        "[virtual]\n\"cores.hash_bytes_per_s\" = { value = \"20MB/s\", source = \"measured\" }";
    let [slow, fast] = [vec![("[virtual]", row)], vec![]].map(|rows| {
        let twin = Twin::with(&[&[("\"10mb\"", "\"400mb\"")][..], &rows[..]].concat());
        green_s(&twin.first("--drain c"))
    });
    assert!((1.0..8.0).contains(&(slow - fast)), "{slow} s, {fast} s");
    let alone = Twin::with(&[&ALONE[..], &[("[virtual]", row)]].concat());
    let found = alone.answer("--restart c --down 10s --set index.shard.check_on_startup=false");
    let [read, unread] = [0, 1].map(|place| green_s(&found["answers"][place]));
    assert!((1.4..2.5).contains(&(read - unread)), "{read} s, {unread} s");
}

/// c has two copies: one comes back by operations, and the other by its files of 30 MB, at 10 MB/s.
#[test]
fn the_first_copies_of_a_node_that_has_just_started_wait_once_and_together() {
    let row = "[virtual]\n\"recovery.first_copy\" = { value = \"5s\", source = \"assumed\" }";
    let (waits, other) = (Twin::with(&[("[virtual]", row)]), Twin::new());
    let longer_by = |question: &str| {
        let [waits, other] = [&waits, &other].map(|twin| {
            green_s(twin.answer(question)["answers"].as_array().unwrap().last().unwrap())
        });
        waits - other
    };
    for slots in ["1", "2"] {
        let slots = format!("cluster.routing.allocation.node_concurrent_recoveries={slots}");
        let longer_s = longer_by(&format!("--restart c --down 10s --set {slots}"));
        assert!((4.0..6.0).contains(&longer_s), "{slots}: {longer_s} s");
    }
    let longer_s = longer_by("--lose c");
    assert!((-0.1..0.1).contains(&longer_s), "the others have run for long: {longer_s} s");
    let left_out = other.answer("--lose c --first-copy 5s")["left_out"].to_string();
    assert!(
        left_out.contains("--first-copy"),
        "an option that changes nothing is told: {left_out}"
    );
}

/// c is away for 10 s, and opens its only copy of a shard that nobody else has.
#[test]
fn a_primary_that_comes_back_to_its_files_takes_what_a_copy_takes_apart_from_its_bytes() {
    let twin = Twin::with(&ALONE);
    let green_with = |open_copy: &str| {
        green_s(&twin.first(&format!("--restart c --down 10s --open-copy {open_copy}")))
    };
    let (short, long) = (green_with("100ms"), green_with("3s"));
    assert!((2.8..3.0).contains(&(long - short)), "{short} s, {long} s");
}

/// A chunk of half a megabyte takes a minute, or an hour and a half; a node sends and receives 30 MB each.
#[test]
fn copies_that_are_only_slow_are_not_said_to_find_no_place() {
    let twin = Twin::with(&[("10mb", "10kb")]);
    let found = twin.answer("--lose c --set indices.recovery.max_bytes_per_sec=20kb");
    let [slow, set] = [0, 1].map(|place| green_s(&found["answers"][place]));
    assert!(slow > 5000.0 && set > 2500.0 && set < 0.6 * slow, "{found}");
    twin.change(&[("10mb", "100b")]);
    let output = twin.asked("--lose c --draws 1");
    failed(&output, 1, &["2 copies are made so slowly", "max_bytes_per_sec is [100b]"]);
    let twin = Twin::new();
    let output = twin.asked("--lose c --draws 1 --open-copy 1h");
    failed(&output, 1, &["copies are made so slowly", "--open-copy", "its record is in"]);
    let runs = entries(&twin.dir.path().join("runs"));
    assert_eq!(runs.len(), 1, "of the settings that were tried none is kept: {runs:?}");
}

/// c was the primary of a shard, to which a document is written every few seconds.
#[test]
fn former_primaries_that_copy_their_files_are_said_to_be_an_upper_bound() {
    let is_said = |of: &[(&str, &str)], indexing: &str| {
        let twin = Twin::with(of);
        let found = twin.answer(&format!("--restart c --down 30s --indexing {indexing}"));
        let bytes = found["answers"][0]["bytes"].as_u64().unwrap();
        (bytes > 0, found["left_out"].to_string().contains("upper bounds"))
    };
    assert_eq!(is_said(&[OF_OPENSEARCH], "0.9"), (true, true));
    assert_eq!(is_said(&[OF_OPENSEARCH], "0"), (false, false));
    assert_eq!(is_said(&[], "0.9"), (true, false), "a cluster of ours copies them, too");
}

/// A shard whose primary is lost with a has two replicas.
#[test]
fn further_replicas_that_recover_from_a_new_primary_are_told() {
    let [two, three] =
        [("replicas = 1", "replicas = 2"), ("[\"a\", \"b\"]", "[\"a\", \"b\", \"c\"]")];
    let is_told = |changes: &[(&str, &str)]| {
        let left_out = Twin::with(changes).answer("--lose a")["left_out"].to_string();
        left_out.contains("each recovers from the new primary")
    };
    assert!(is_told(&[two, three, OF_OPENSEARCH]) && !is_told(&[OF_OPENSEARCH]));
    assert!(!is_told(&[two, three]), "in a cluster of ours they do");
}
