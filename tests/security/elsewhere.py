"""Rows of the security page that tests show which stand beside what they test."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One threat, what stands between, and the tests that show it."""

    id: str
    threat: str
    barrier: str
    tests: tuple[str, ...]
    """``<file below tests>::<name>``."""


_TASK_FOLDER = "workers/contract/test_task_folder.py::test_"
_COPYING = "workers/container/test_copying.py::test_"
_CONTAINER = "interfaces/test_container.py::test_"
_STATE = "workers/trial/test_state.py::test_"
_RUN = "workers/trial/test_run.py::test_"
_FILES = "workers/trial/test_files.py::test_"
_DISK = "workers/trial/test_disk_watch.py::test_"
_GATEWAY = "workers/gateway/test_"
_NETWORK = "workers/container/test_network.py::test_"

ELSEWHERE = (
    Row(
        "T6",
        "a task's archive or folder with `..`, absolute names, links, devices, pipes, names of any "
        "bytes, too many or too large files",
        "regular files with plain names below one folder, in bounds; else nothing is written",
        (
            _TASK_FOLDER + "hostile_archives_leave_nothing",
            _TASK_FOLDER + "links_sockets_and_pipes_are_refused",
            _TASK_FOLDER + "bounds_of_an_archive",
            _TASK_FOLDER + "names_that_cannot_be_told_apart_are_refused",
        ),
    ),
    Row(
        "T7",
        "tests that answer with a link, a pipe, a flood, nothing, or never",
        "guarded reads with a bound, a clock, and a second run; the task is blamed",
        (
            _STATE + "what_tests_may_do",
            "workers/trial/test_flood.py::"
            "test_a_gigabyte_of_a_verifier_costs_its_beginning_and_nothing_else",
            "workers/trial/test_verify_again.py::"
            "test_there_is_no_third_time_and_what_the_first_left_is_not_the_seconds_word",
        ),
    ),
    Row(
        "T8",
        "a build that fills the node's disk, or never ends",
        "the disk is looked at while it builds, and a clock ends it",
        (
            "workers/container/test_disk.py::test_a_build_that_eats_up_the_disk_is_stopped",
            _CONTAINER + "a_build_that_takes_too_long_is_ended",
        ),
    ),
    Row(
        "T9",
        "names of a task in a table that a spreadsheet runs, or in the report's page",
        "no cell begins a formula; everything is escaped",
        (
            "scheduler/report/test_csv_rows.py::"
            "test_names_cannot_break_the_table_nor_run_as_a_formula",
            "scheduler/report/test_page.py::test_what_comes_from_a_run_is_escaped",
        ),
    ),
    Row(
        "A16",
        "a reward that is written before the tests run; tests and log folders that are replaced by "
        "links, pipes or mounts",
        "both are mounts inside a read-only one; what is in them is moved away first",
        (_STATE + "nothing_that_was_put_there_before_is_a_reward",),
    ),
    Row(
        "A17",
        "processes that outlive the agent and rewrite its answer: double forks, loops, fork bombs",
        "the container is killed, or everything in it from outside, and its death proved",
        (
            _STATE + "nothing_that_lives_on_changes_a_verdict",
            _STATE + "nothing_that_lives_on_reaches_a_verdict_by_evidence",
            _STATE + "under_agent_who_lives_on_is_named",
        ),
    ),
    Row(
        "A18",
        "the tests, read before they run, and our variables, read by what they call",
        "the folder is empty and read-only until the agents are dead; the variables are taken away",
        (
            _STATE + "no_test_is_readable_before_the_freeze",
            _STATE + "tests_see_no_variable_of_ours_and_those_of_their_task",
        ),
    ),
    Row(
        "A19",
        "an agent's keys, printed and posted in every form, as evidence that is stored",
        "each is struck out of every file before it is written, and looked for once more",
        (_RUN + "no_secret_reaches_the_store_whatever_the_agent_prints",),
    ),
    Row(
        "A20",
        "links, pipes, devices, terabytes of nothing and endless lines in the log folder",
        "regular files only, no link followed, bounded reads that leap over holes",
        (
            _FILES + "only_regular_files_are_read",
            _FILES + "a_tail_leaps_over_a_hole_of_a_terabyte",
            _FILES + "a_line_without_end_does_not_grow_without_bound",
        ),
    ),
    Row(
        "A21",
        "floods: of the logs, the shell's output, the node's disk; folders three thousand deep",
        "logs lose their middle as they grow, the disk's share is bounded, removal needs no path",
        (
            "workers/trial/test_flood.py::"
            "test_a_gigabyte_in_the_agents_log_is_cut_while_it_is_written",
            "workers/trial/test_flood.py::"
            "test_a_gigabyte_of_bytes_through_the_shell_tool_stays_in_the_container",
            _DISK + "the_logs_may_not_take_more_than_the_task_grants",
            _RUN + "an_agent_that_fills_the_nodes_disk_is_stopped",
            _RUN + "whatever_an_agent_makes_of_its_log_folder_nothing_stays_on_the_node",
        ),
    ),
    Row(
        "A22",
        "another model, another endpoint, compressed or endless requests, more than the budget",
        "refused before the provider is asked",
        (
            _GATEWAY + "call.py::test_what_may_not_be_asked",
            _GATEWAY + "call.py::test_budgets_stop_before_the_provider_is_asked",
            _GATEWAY + "hostile.py::test_long_headers_of_an_agent_end_its_request_only",
            _GATEWAY + "hostile.py::test_what_is_no_request_harms_nobody",
            _GATEWAY + "trial.py::"
            "test_connections_beyond_the_bound_end_unread_and_their_places_come_back",
        ),
    ),
    Row(
        "A23",
        "the relay's hidden channels, other identities, hostile frames, floods of connections",
        "proof of a key on every connection, membership, bounds of size, number and time",
        (
            "workers/relay/test_session.py::test_1_4_before_authentication_nothing_is_told",
            "workers/relay/test_session.py::test_1_3_a_hostile_message_gets_a_notice",
            "workers/relay/test_server.py::test_a_listener_holds_a_bounded_number_of_connections",
            "workers/relay/test_bounds.py::"
            "test_1_3_a_client_that_asks_and_does_not_read_costs_references",
        ),
    ),
    Row(
        "A24",
        "the container's end by signals from inside, so that its state cannot be graded",
        "its first process is ours, and heeds none that may come from there",
        (_STATE + "an_agent_cannot_end_its_container_from_inside",),
    ),
    Row(
        "I5",
        "files that are copied out of an image: archives with `..` and absolute names, links, "
        "devices, several members, sizes that lie, bombs",
        "one regular member, its name ignored, its size bounded in stream and header; else nothing",
        (
            _COPYING + "everything_else_is_refused_and_leaves_nothing",
            _COPYING + "the_content_arrives_however_it_is_cut",
            _COPYING + "what_the_engine_calls_no_regular_file_is_refused_early",
            _CONTAINER + "nothing_else_is_copied_out",
        ),
    ),
    Row(
        "I6",
        "an image that leaves links, pipes or floods where the compiled agent is read back",
        "small regular files of names that we choose",
        (
            "workers/container/test_agent_bundle.py::"
            "test_anything_but_a_small_regular_file_is_refused",
        ),
    ),
    Row(
        "I7",
        "an image's volumes, user, working folder and limits",
        "volumes go with the container; limits and privileges are the engine's, from our spec",
        (
            _CONTAINER + "anonymous_volumes_go_with_their_container",
            _CONTAINER + "mounts_environment_limits_and_privileges_are_as_asked",
            _CONTAINER + "a_fork_bomb_meets_its_limit",
        ),
    ),
    Row(
        "M5",
        "a transcript, log or file of a try that acts in a browser: scripts, styles, reversed text",
        "escaped, in a sandbox without scripts, and read so in a real browser",
        (
            "scheduler/serve/test_browser.py::test_a_hostile_transcript_harms_nothing",
            "scheduler/serve/test_server.py::test_raw_files_are_text_in_a_sandbox",
            "scheduler/serve/test_guard.py::test_a_name_from_elsewhere_is_not_served",
        ),
    ),
    Row(
        "M6",
        "a transcript or log that acts on a terminal",
        "control characters are shown as what they are",
        (
            "scheduler/report/test_transcript.py::"
            "test_nothing_that_a_terminal_would_act_upon_is_shown",
            "scheduler/watch/test_trial.py::test_it_fills_any_terminal_exactly",
            "scheduler/watch/test_sweep_screen.py::test_what_others_wrote_moves_no_cursor",
            "scheduler/cli/test_progress.py::test_what_a_container_said_cannot_act_on_the_terminal",
            "scheduler/cli/test_logs.py::test_for_people_it_is_a_line_each",
        ),
    ),
    Row(
        "M7",
        "messages that are made to pass: megabytes, deep JSON, lone surrogates, wrong types",
        "evidence is checked before it is graded, and no verifier passes what it cannot read",
        (
            "manifests/test_task_hostile.py::test_unreadable_evidence_gives_zeros_and_error",
            "manifests/test_task_hostile.py::test_readable_hostile_evidence_never_passes",
            "manifests/test_task_hostile.py::test_evidence_that_is_no_file",
        ),
    ),
    Row(
        "M8",
        "a provider whose answer is endless, packed, broken off, or holds the key between pieces",
        "bounded, unpacked and searched across pieces; a break is not shown as an end",
        (
            _GATEWAY + "call.py::test_a_key_that_a_provider_repeats_is_blanked_across_pieces",
            _GATEWAY + "hostile.py::test_a_compressed_answer_is_searched_for_the_key",
            _GATEWAY + "hostile.py::test_too_many_bytes_of_a_stream_without_an_end_of_line",
            _GATEWAY + "upstream.py::test_a_huge_answer",
            "workers/agent/test_http_post.py::test_no_whole_answer",
            _GATEWAY + "trial.py::test_no_key_is_in_any_output",
        ),
    ),
    Row(
        "M9",
        "a command without end, output without end, a hundred calls at once, calls of other forms",
        "a clock, the end of the output with the whole in a file of the container, 64 calls",
        (
            "workers/agent/test_shell.py::"
            "test_a_command_that_takes_too_long_is_killed_with_its_children",
            "workers/agent/test_shell.py::test_a_flood_is_read_and_dropped",
            "workers/agent/test_shell.py::test_more_calls_than_are_allowed_are_not_run",
            "workers/agent/test_shell.py::test_a_wrong_call_is_told_to_the_model",
        ),
    ),
    Row(
        "N7",
        "another trial's relay: its keys, channels and memories, by fifty agents at once",
        "a relay for each trial, on a socket of its own; a key of one is nobody in another",
        ("workers/relay/test_isolation.py::test_fifty_agents_find_nothing_of_the_other_trials",),
    ),
    Row(
        "N8",
        "another trial's gateway token",
        "401 at any gateway but its own, and at its own once the trial is over",
        (_GATEWAY + "hostile.py::test_a_token_opens_its_own_trial_and_model_and_dies_with_it",),
    ),
    Row(
        "N9",
        "the bridge without its rules, or another network of its name",
        "rules are looked at before each start; without them nothing is started on it",
        (
            _NETWORK + "a_public_container_reaches_neither_the_host_nor_link_local",
            _NETWORK + "public_containers_do_not_reach_each_other_nor_published_ports",
            _NETWORK + "without_rules_no_public_container_is_started",
            _NETWORK + "a_network_of_the_same_name_that_is_not_fenced_is_refused",
        ),
    ),
    Row(
        "N10",
        "a node's user who asks the door helper for another's container, or stalls it",
        "users by name, containers that the engine says are Apiary's, a clock on every request",
        (
            "workers/container/test_door_helper.py::"
            "test_other_users_and_other_containers_are_refused",
            "workers/container/test_door_helper.py::test_slow_and_broken_clients_stall_nobody",
            "workers/container/test_door.py::test_a_process_of_another_container_is_refused",
        ),
    ),
    Row(
        "N11",
        "labels that somebody forged, so that the reaper removes what is not ours",
        "labels carry a proof of the very thing that they were given to",
        (
            "workers/container/test_reap.py::test_labels_without_their_proof_are_somebody_elses",
            "workers/container/test_reap.py::test_a_running_sweep_and_strangers_keep_all_they_have",
        ),
    ),
)
"""Ids go on where those of the tests in this folder end."""
