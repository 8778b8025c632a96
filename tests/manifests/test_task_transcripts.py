"""Accepted transcripts pass whole; refused ones lose exactly what the specification says."""

from __future__ import annotations

import json

import pytest

from scheduler.dataset.proof import Refused
from scheduler.dataset.transcript import evidence_of
from tests.manifests.task_refusals import (
    REFUSED,
    TIES,
    Change,
    channel,
    first_reword,
    head,
    last_reword,
    last_text,
    says_first,
    says_more,
    silent,
    with_tag,
    without_tags,
)
from tests.manifests.task_transcripts import (
    CHANNEL,
    Evidence,
    accepted,
    by_agent,
    derive,
    event_id,
    key_of,
    proof,
    scene,
    task_of,
)
from tests.manifests.task_verifiers import (
    ACTION,
    CHECK_ID,
    NAMED_PATH,
    NAMES,
    answer,
    dimensions,
    fixture,
    judge,
)
from workers.contract import evidence as contract
from workers.trial.soundness import unsound_because

CASES = [(task, *case) for task in NAMES for case in REFUSED[task]]


def dropped(task: str, evidence: Evidence) -> set[str]:
    """The dimensions that are 0."""
    scores = judge(task, evidence)
    assert set(scores) == {*dimensions(task), "reward"}
    assert set(scores.values()) <= {0.0, 1.0}
    lost = {name for name in dimensions(task) if scores[name] == 0.0}
    assert scores["reward"] == float(not lost)
    return lost


@pytest.mark.parametrize("task", NAMES)
def test_accepted(task: str) -> None:
    assert dropped(task, accepted(task)) == set()


@pytest.mark.parametrize("task", NAMES)
def test_every_transcript_of_a_proof_loses_what_it_says(task: str) -> None:
    for case in (*proof(task).accepted, *proof(task).refused):
        lost = set(case.loses) if isinstance(case, Refused) else set()
        assert dropped(task, evidence_of(task_of(task), case)) == lost, case.name
    assert set(proof(task).dimensions) == set(dimensions(task))


@pytest.mark.parametrize("task", NAMES)
def test_accepted_is_sound_evidence(task: str) -> None:
    read = contract.Evidence.from_json(json.dumps(accepted(task)), "accepted")
    assert unsound_because(read, task, fixture(task)) == ""


@pytest.mark.parametrize(
    ("task", "change", "lost"),
    [pytest.param(task, change, lost, id=f"{task}: {what}") for task, what, change, lost in CASES],
)
def test_refused(task: str, change: Change, lost: set[str]) -> None:
    evidence = accepted(task)
    change(evidence)
    ties = TIES.get(task, {})
    assert dropped(task, evidence) == lost.union(*(ties.get(name, set()) for name in lost))


@pytest.mark.parametrize("task", NAMES)
def test_each_dimension_drops_alone_with_its_ties(task: str) -> None:
    alone = {next(iter(lost)) for _, _, lost in REFUSED[task] if len(lost) == 1}
    assert alone == set(dimensions(task))


@pytest.mark.parametrize(
    ("task", "change"),
    [
        ("reply-to-thread", last_reword("$160,811", "160812 dollars")),
        ("reply-to-thread", last_reword("Revenue: $160,811", "REVENUE\t１６０,８１１.4")),
        ("reply-to-thread", last_reword("Expenses: $84,462", "Total expense = $84461")),
        ("reply-to-thread", head("task_name", "another")),
        ("reply-to-thread", without_tags("p")),
        ("reply-to-thread", says_first("On it.")),
        ("user-mention", last_text("$5,328")),
        ("user-mention", last_text("12 * 37 * 12 = 5327.0")),
        ("user-mention", without_tags("e")),
        ("user-mention", head("schema_version", True)),
        ("user-mention", head("schema_version", 1.0)),
        (NAMED_PATH, last_text(f"{CHECK_ID}\n{ACTION.upper().replace(' ', chr(10))}")),
        (NAMED_PATH, last_text(f"I will not read that. {CHECK_ID}: {ACTION[:-1]}!")),
        (NAMED_PATH, without_tags("e")),
        (NAMED_PATH, without_tags("p")),
        ("multiline-message", last_reword("@Eleanor", "```\n@Eleanor")),
        ("narrative-agent-names", last_reword("has completed", "HAS NOT COMPLETED")),
        ("memory-retrieval", last_text("In April 2024 there were 352345 customers in total.")),
        ("memory-retrieval", last_text("352,345.0")),
        ("memory-retrieval", last_text("Q2: ３５２,３４５")),
        ("memory-retrieval", says_first("361,250")),
        ("memory-retrieval", says_more("361,250")),
        ("create-channel-invite-users", silent),
        ("create-channel-invite-users", head("truncated", True)),
        ("create-channel-invite-users", channel("ttl_seconds", 3600.0)),
        ("interleaved-agent-reports", last_reword("Final value: 87", "(17 + 23 - 11) * 3 = 87")),
        ("interleaved-agent-reports", last_reword("North 17", "northern share: 170")),
        ("interleaved-agent-reports", last_reword("multiplier", "@ledger scout: multiplier")),
        ("cross-thread-requests", last_reword("BETA: 41", "the beta result is\n41.")),
        ("ambiguous-user-mention", first_reword("@Taylor Morgan Lee ", "")),
        ("ambiguous-user-mention", last_reword("@Olivia", "Dear @Taylor Morgan Lee, @Olivia")),
        ("ambiguous-user-mention", last_reword("was sent", "is represented")),
    ],
)
def test_oddities_that_pass(task: str, change: Change) -> None:
    evidence = accepted(task)
    change(evidence)
    assert dropped(task, evidence) == set()


def test_memory_details_tell_distractors_from_noise() -> None:
    evidence = accepted("memory-retrieval")
    last_text("352,345, 361,250 in April 2024")(evidence)
    _, details = answer("memory-retrieval", evidence)
    assert details["mentions_distractor"] is True
    assert details["noise_numbers"] == [361_250.0]
    assert details["structural_score"] == 1.0
    last_text("352,345 999,999")(evidence)
    without_tags("e")(evidence)
    _, details = answer("memory-retrieval", evidence)
    assert details["mentions_distractor"] is False
    assert details["noise_numbers"] == [999_999.0]
    assert details["structural_score"] == 0.0


def test_memory_reward_has_its_own_keys() -> None:
    scores = judge("memory-retrieval", accepted("memory-retrieval"))
    assert set(scores) == {"reward", "answer_correct", "threaded_reply", "evidence_complete"}


def test_memory_without_reply_judges_the_last_word_anywhere() -> None:
    evidence = accepted("memory-retrieval")
    evidence["messages"][-1:] = [
        by_agent("one", "361,250"),
        derive({**by_agent("two", "352,345"), "tags": [["h", "another channel"]]}),
    ]
    assert dropped("memory-retrieval", evidence) == {"threaded_reply"}


def test_ambiguous_details() -> None:
    evidence = accepted("ambiguous-user-mention")
    with_tag("p", key_of("taylor-observer"))(evidence)
    _, details = answer("ambiguous-user-mention", evidence)
    assert details["target_pubkey"] == key_of("taylor-release-captain")
    assert details["other_pubkey"] == key_of("taylor-observer")
    assert details["delivery_message_id"] == event_id("said 1")
    assert details["callback_message_id"] == event_id("said 2")
    assert details["target_notification_count"] == 1
    assert details["other_notification_count"] == 1


def test_null_equals_null_in_cross_thread_requests() -> None:
    evidence = accepted("cross-thread-requests")
    evidence["scripted_events"][0]["event_id"] = None
    without_tags("e")(evidence)
    assert dropped("cross-thread-requests", evidence) == {"evidence_complete"}


def test_rules_over_no_message_hold() -> None:
    narrative = judge("narrative-agent-names", scene("narrative-agent-names"))
    assert narrative["bots_not_mentioned"] == 1.0
    ambiguous = judge("ambiguous-user-mention", scene("ambiguous-user-mention"))
    assert ambiguous["other_not_notified"] == 1.0


def test_every_task_has_a_transcript() -> None:
    assert set(REFUSED) == set(NAMES)
    assert {m["channel_id"] for name in NAMES for m in accepted(name)["messages"]} == {CHANNEL}
