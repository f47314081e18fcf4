//! A binary of its own: its tests need tools, or the machine to themselves. The longest stand first, so that others run
//! beside them; and after one that starts JVMs, which take the cores, comes one that mostly waits.

mod browser;
mod clients;
#[path = "../it/common/mod.rs"]
mod common;
mod compared;
mod cores;
mod diagnose;
mod faults;
mod full_disks;
mod load;
mod metrics;
mod opensearch;
mod ordinary_client;
mod real_against_virtual;
mod side_by_side;
mod slow_disk;
mod steer;
mod terminal;
mod web;

testbed::main! {
    side_by_side::answers_are_those_of_opensearch [JAVA, MAVEN],
    diagnose::every_cause_is_found [],
    faults::nodes_of_opensearch [JAVA, MAVEN, CONTROL_GROUPS, STRESS_NG],
    web::the_page_says_of_the_embedded_engine_what_was_done_to_it [CHROMIUM],
    steer::opensearch_is_steered_and_everything_is_as_it_was [JAVA, MAVEN],
    clients::drivers_race_a_track [CLIENTS],
    opensearch::opensearch_3_0_0_is_started_and_understood [JAVA_21, MAVEN],
    metrics::prometheus_reads_them_and_the_dashboard_has_something_to_show [PROMETHEUS],
    opensearch::elasticsearch_7_10_2_is_started_and_understood [JAVA, MAVEN],
    diagnose::cases_are_drawn_and_tried_on_processes [],
    diagnose::what_was_found_is_shown_where_a_later_cluster_fails [],
    faults::the_embedded_engine_as_processes [],
    web::the_page_says_of_opensearch_what_was_done_to_it [JAVA, MAVEN, CHROMIUM],
    web::tabs_policy_and_reconnecting [CHROMIUM],
    opensearch::a_replica_crosses_the_link_and_both_copies_hold_the_same [JAVA, MAVEN],
    full_disks::full_disks_stop_a_follower_and_a_leader_and_room_has_them_go_on [OWN_MOUNTS],
    clients::clients_of_python_work [CLIENTS],
    opensearch::opensearch_1_3_13_is_started_and_understood [JAVA, MAVEN],
    web::steps_of_steer_and_an_answer_of_what_if_are_shown [CHROMIUM],
    opensearch::a_snapshot_is_restored_through_the_link [JAVA, MAVEN],
    faults::the_embedded_engine_as_processes_that_lack_cores [CONTROL_GROUPS, STRESS_NG],
    opensearch::no_jvm_and_no_directory_outlives_a_killed_runner [JAVA, MAVEN],
    web::a_report_fits_every_width_in_both_themes [CHROMIUM],
    load::opensearch_behind_tls [JAVA, MAVEN],
    clients::the_client_of_java_works [CLIENTS, JAVA],
    opensearch::a_setting_that_the_release_does_not_have_is_said [JAVA, MAVEN],
    clients::clients_of_javascript_work [CLIENTS],
    clients::elasticdump_copies_an_index_out_and_in [CLIENTS],
    clients::esrally_lists_and_compares_races_that_narrows_stored [CLIENTS],
    web::a_browser_shows_the_token_over_tls [CHROMIUM],
    opensearch::that_maven_is_missing_is_said_with_the_command_that_installs_it [JAVA],
    clients::the_client_of_go_works [CLIENTS],
    clients::curl_works [CLIENTS],
    clients::the_matrix_of_clients_is_what_is_run [],
    ordinary_client::opensearch_py_works [OPENSEARCH_PY],
    ordinary_client::opensearch_py_reads_a_stored_race [OPENSEARCH_PY],
    slow_disk::a_slow_disk_is_busy_for_as_long_as_its_rate_says [OWN_DISKS],
    terminal::watch_gives_the_terminal_back_whoever_ends_it [SCRIPT],
    terminal::a_key_ends_watch_while_the_cluster_is_silent [SCRIPT],
    terminal::a_disk_that_fills_does_not_take_the_table_with_it [MOUNT],
    terminal::a_full_directory_for_temporary_files_is_named [MOUNT],
    slow_disk::nothing_of_a_slow_disk_is_left_when_its_holder_or_its_server_is_killed [OWN_DISKS],
    cores::a_slow_node_is_held_to_a_share_of_the_cores [CONTROL_GROUPS],
    cores::a_slow_node_whose_own_group_is_nowhere_is_held_no_longer [CONTROL_GROUPS],
    cores::a_loaded_node_shares_its_cores_with_competitors [CONTROL_GROUPS, STRESS_NG],
    load::the_embedded_engine_behind_tls [],
    side_by_side::all_that_works_is_asked_for [],
    compared::what_differs_is_said [],
    faults::the_embedded_engine_in_virtual_time [];
    quiet:
    opensearch::injected_causes_are_found_by_looking_and_by_probing [JAVA, MAVEN],
    real_against_virtual::virtual_time_says_what_real_time_does [];
    alone:
    diagnose::a_starved_node_is_found_and_a_healthy_one_is_left_in_peace [CONTROL_GROUPS],
}
