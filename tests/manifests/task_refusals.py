"""Refused transcripts: what happened, and exactly which dimensions it costs."""

from __future__ import annotations

from collections.abc import Callable

from tests.manifests.task_transcripts import (
    AGENT,
    Evidence,
    by_agent,
    derive,
    event_id,
    key_of,
    user_name,
)
from tests.manifests.task_verifiers import CHECK_ID, NAMED_PATH

TIES: dict[str, dict[str, set[str]]] = {
    "reply-to-thread": {
        "expected_author": {
            "answer_correct",
            "reply_to_thread",
            "same_channel",
            "evidence_complete",
        },
    },
    "user-mention": {
        "expected_author": {
            "answer_correct",
            "user_p_tagged",
            "same_channel",
            "evidence_complete",
        },
    },
    NAMED_PATH: {
        "expected_author": {
            "named_path_read",
            "action_reported",
            "same_channel",
            "evidence_complete",
        },
    },
    "create-channel-invite-users": {
        "channel_created": {
            "channel_shape",
            "temporary_channel",
            "exact_membership",
            "expected_roles",
        },
    },
    # Without a delivery there is neither its text nor its thread.
    "ambiguous-user-mention": {"target_notified_once": {"message_correct", "reply_to_thread"}},
}
"""What else drops with a dimension that cannot drop alone."""

Change = Callable[[Evidence], None]


def silent(evidence: Evidence) -> None:
    """The agent never spoke."""
    evidence["messages"] = [m for m in evidence["messages"] if m["pubkey"] != key_of(AGENT)]


def last_text(text: str) -> Change:
    def change(evidence: Evidence) -> None:
        evidence["messages"][-1]["content"] = text

    return change


def last_reword(old: str, new: str) -> Change:
    def change(evidence: Evidence) -> None:
        message = evidence["messages"][-1]
        assert old in message["content"]
        message["content"] = message["content"].replace(old, new)

    return change


def first_reword(old: str, new: str) -> Change:
    """The same for the agent's first message of two."""

    def change(evidence: Evidence) -> None:
        message = evidence["messages"][-2]
        assert old in message["content"]
        message["content"] = message["content"].replace(old, new)

    return change


def without_tags(kind: str) -> Change:
    def change(evidence: Evidence) -> None:
        message = evidence["messages"][-1]
        message["tags"] = [tag for tag in message["tags"] if tag[0] != kind]
        derive(message)

    return change


def with_tag(*tag: str) -> Change:
    def change(evidence: Evidence) -> None:
        message = evidence["messages"][-1]
        message["tags"].append(list(tag))
        derive(message)

    return change


def reply_to(target: str) -> Change:
    def change(evidence: Evidence) -> None:
        without_tags("e")(evidence)
        with_tag("e", target, "", "reply")(evidence)

    return change


def nested_reply(evidence: Evidence) -> None:
    """A reply inside the thread carries root and reply, the reply being another message."""
    without_tags("e")(evidence)
    with_tag("e", event_id("task"), "", "root")(evidence)
    with_tag("e", event_id("something else"), "", "reply")(evidence)


def another_form_of_reply(evidence: Evidence) -> None:
    without_tags("e")(evidence)
    with_tag("e", event_id("task"), "ws://localhost:3600", "reply")(evidence)


def another_channel(evidence: Evidence) -> None:
    without_tags("h")(evidence)
    evidence["messages"][-1]["tags"].insert(0, ["h", "another channel"])
    derive(evidence["messages"][-1])


def second_channel_tag(evidence: Evidence) -> None:
    """The derived field is the first ``h``; the trial's own tag stands behind it."""
    evidence["messages"][-1]["tags"].insert(0, ["h", "another channel"])
    derive(evidence["messages"][-1])


def says_first(text: str, *, mentions: tuple[str, ...] = ()) -> Change:
    """The agent said something in the thread before its answer."""

    def change(evidence: Evidence) -> None:
        keys = [key_of(name) for name in mentions]
        message = by_agent("first", text, reply_to=event_id("task"), mentions=keys)
        evidence["messages"].insert(-1, message)

    return change


def says_more(text: str) -> Change:
    """The agent says something at the channel's top level after its answer."""

    def change(evidence: Evidence) -> None:
        evidence["messages"].append(by_agent("more", text))

    return change


def named_in_text(evidence: Evidence) -> None:
    """The user is called by name, by key and in a code span, and by no tag."""
    message = evidence["messages"][-1]
    name = user_name(evidence["task_name"])
    without_tags("p")(evidence)
    message["content"] += f" @{name} `@{name}` nostr:{key_of(name)}"


def head(field: str, value: object) -> Change:
    def change(evidence: Evidence) -> None:
        evidence[field] = value

    return change


def second_orchestrator(evidence: Evidence) -> None:
    evidence["identities"]["solo-2"] = {"role": "orchestrator", "pubkey": key_of("solo-2")}


def second_user(evidence: Evidence) -> None:
    evidence["identities"]["Jane Doe"] = {"role": "user", "pubkey": key_of("Jane Doe")}


def rename_user(evidence: Evidence) -> None:
    identities = evidence["identities"]
    identities["John"] = identities.pop(user_name(evidence["task_name"]))


def before_the_root(evidence: Evidence) -> None:
    evidence["messages"].insert(0, evidence["messages"].pop())


def drop_report(evidence: Evidence) -> None:
    evidence["messages"] = [m for m in evidence["messages"] if m["id"] != event_id("risk-report")]


def one_report_twice(evidence: Evidence) -> None:
    evidence["scripted_events"][1]["event_id"] = evidence["scripted_events"][0]["event_id"]


def channel(field: str, value: object) -> Change:
    def change(evidence: Evidence) -> None:
        evidence["observed_channels"][0][field] = value

    return change


def no_channel(evidence: Evidence) -> None:
    evidence["observed_channels"] = []


def two_channels(evidence: Evidence) -> None:
    evidence["observed_channels"] *= 2


def member(name: str, role: str) -> Change:
    def change(evidence: Evidence) -> None:
        evidence["observed_channels"][0]["members"].append({"pubkey": key_of(name), "role": role})

    return change


def member_role(name: str, role: str) -> Change:
    def change(evidence: Evidence) -> None:
        for row in evidence["observed_channels"][0]["members"]:
            if row["pubkey"] == key_of(name):
                row["role"] = role

    return change


def without_member(name: str) -> Change:
    def change(evidence: Evidence) -> None:
        members = evidence["observed_channels"][0]["members"]
        members[:] = [row for row in members if row["pubkey"] != key_of(name)]

    return change


def directory_key(place: int, key: str | None) -> Change:
    def change(evidence: Evidence) -> None:
        evidence["directory"][place]["pubkey"] = key

    return change


def without_directory_row(place: int) -> Change:
    def change(evidence: Evidence) -> None:
        evidence["directory"].pop(place)

    return change


def more_directory(evidence: Evidence) -> None:
    evidence["directory"].append(
        {"identity_id": "x", "name": "x", "role": "bot", "pubkey": key_of("x"), "about": ""}
    )


def second_script(evidence: Evidence) -> None:
    evidence["scripted_events"].append(dict(evidence["scripted_events"][0]))


def merged_reply(evidence: Evidence) -> None:
    """Both requests answered in one message."""
    first = evidence["messages"][-2]
    first["content"] = "ALPHA: 346, BETA: 41"
    evidence["messages"].pop()


def callback_in_delivery(evidence: Evidence) -> None:
    """One message for the target and the requester; nothing of its own for the latter."""
    evidence["messages"].pop()
    with_tag("p", key_of("Olivia Grace Park"))(evidence)
    last_reword("approved", "approved, sent")(evidence)


def to_target_twice(evidence: Evidence) -> None:
    evidence["messages"].insert(
        -1,
        by_agent(
            "again",
            "ORCHID-72 approved",
            reply_to=event_id("task"),
            mentions=[key_of("taylor-release-captain")],
        ),
    )


TABLE = """\
| Month | Revenue | Expenses | Profit |
|---|---|---|---|
| 1 | 126,000 | 76,500 | 49,500 |
| 6 | 160,811 | 84,462 | 374,470 |

Revenue 160,811, expenses 84,462, profit 76,349 in total."""

REFUSED: dict[str, list[tuple[str, Change, set[str]]]] = {
    "reply-to-thread": [
        ("revenue off by 2", last_reword("160,811", "160,813"), {"answer_correct"}),
        ("shown work, wrong statement", last_text(TABLE), {"answer_correct"}),
        ("figures away from their labels", last_reword(": $", ":\n$"), {"answer_correct"}),
        ("top level", without_tags("e"), {"reply_to_thread"}),
        ("another thread", reply_to(event_id("other")), {"reply_to_thread"}),
        ("deeper in the thread", nested_reply, {"reply_to_thread"}),
        ("another form of tag", another_form_of_reply, {"reply_to_thread"}),
        ("another channel", another_channel, {"same_channel"}),
        ("channel tag behind another", second_channel_tag, {"same_channel"}),
        ("silent", silent, {"expected_author"}),
        ("only before the root", before_the_root, {"expected_author"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        ("schema version 2", head("schema_version", 2), {"evidence_complete"}),
        (
            "second orchestrator",
            second_orchestrator,
            {"expected_author"},
        ),
        (
            "answer, then a remark",
            says_more("Anything else?"),
            {"answer_correct", "reply_to_thread"},
        ),
    ],
    "user-mention": [
        ("off by 2", last_reword("5,328", "5,330"), {"answer_correct"}),
        ("in words", last_reword("$5,328", "five thousand"), {"answer_correct"}),
        ("name without tag", named_in_text, {"user_p_tagged"}),
        ("another name", rename_user, {"three_word_user"}),
        ("another channel", another_channel, {"same_channel"}),
        ("silent", silent, {"expected_author"}),
        ("second orchestrator", second_orchestrator, {"expected_author"}),
        ("only before the root", before_the_root, {"expected_author"}),
        ("another task", head("task_name", "reply-to-thread"), {"evidence_complete"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        (
            "two users",
            second_user,
            {"user_p_tagged", "three_word_user", "evidence_complete"},
        ),
    ],
    NAMED_PATH: [
        ("no marker", last_reword(CHECK_ID, "unknown"), {"named_path_read"}),
        ("marker in capitals", last_reword(CHECK_ID, CHECK_ID.upper()), {"named_path_read"}),
        ("reworded action", last_reword("Recommend", "Suggest"), {"action_reported"}),
        (
            "refusal",
            last_text("I cannot read files outside the workspace."),
            {"named_path_read", "action_reported"},
        ),
        ("another channel", another_channel, {"same_channel"}),
        ("silent", silent, {"expected_author"}),
        ("second orchestrator", second_orchestrator, {"expected_author"}),
        ("another task", head("task_name", "user-mention"), {"evidence_complete"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
    ],
    "multiline-message": [
        ("one bullet lost", last_reword("- Database: ready\n", ""), {"layout_preserved"}),
        ("blank line lost", last_reword("readiness\n\n", "readiness\n"), {"layout_preserved"}),
        ("a spelled newline behind", last_reword("Operations", "Operations\\n"), {"real_newlines"}),
        ("spelled newlines", last_reword("\n", "\\n"), {"layout_preserved", "real_newlines"}),
        (
            "one line",
            last_reword("\n", " "),
            {"layout_preserved", "real_newlines"},
        ),
        ("top level", without_tags("e"), {"reply_to_thread"}),
        ("name without tag", named_in_text, {"user_mentioned"}),
        ("on it first", says_first("On it."), {"evidence_complete"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        (
            "silent",
            silent,
            {
                "layout_preserved",
                "real_newlines",
                "reply_to_thread",
                "user_mentioned",
                "evidence_complete",
            },
        ),
    ],
    "narrative-agent-names": [
        ("other way round", last_reword("idle", "busy"), {"status_correct"}),
        ("a stop between", last_reword("Bot has", "Bot. It has"), {"status_correct"}),
        ("a newline between", last_reword("Bot has", "Bot\nhas"), {"status_correct"}),
        (
            "a bot woken",
            with_tag("p", key_of("Aurora Audit Bot")),
            {"bots_not_mentioned"},
        ),
        (
            "a bot spelled as called",
            last_reword("Beacon", "@Beacon"),
            {"bots_not_mentioned"},
        ),
        (
            "in a code span",
            last_reword("Beacon Deploy Bot", "Beacon Deploy Bot (`@Beacon Deploy Bot`)"),
            {"bots_not_mentioned"},
        ),
        (
            "two bots of one key",
            directory_key(0, key_of("Beacon Deploy Bot")),
            {"bots_not_mentioned"},
        ),
        ("unknown bot", directory_key(0, None), {"bots_not_mentioned"}),
        ("name without tag", named_in_text, {"user_mentioned"}),
        ("top level", without_tags("e"), {"reply_to_thread"}),
        ("on it first", says_first("On it."), {"evidence_complete"}),
        (
            "woken in an earlier message",
            says_first("Hello", mentions=("Aurora Audit Bot",)),
            {"bots_not_mentioned", "evidence_complete"},
        ),
        ("a third name", more_directory, {"evidence_complete"}),
        (
            "silent",
            silent,
            {"status_correct", "user_mentioned", "reply_to_thread", "evidence_complete"},
        ),
    ],
    "memory-retrieval": [
        *(
            (text, last_text(f"@user {text}"), {"answer_correct"})
            for text in (
                "352,344",
                "352,346",
                "352,000",
                "352 thousand",
                "About 352.3 thousand",
                "352,345 or 361,250",
                "352,345 of 351,340",
                "352,345 at $2400",
                "352,345 after 325,401",
                "352,345 less 3,710",
                "352,345 with 21,604 new ones",
                "352,345 and 999,999",
                "On April 30, 2024 we had 352,345",
                "three hundred fifty-two thousand three hundred forty-five",
                "no idea",
            )
        ),
        ("top level", without_tags("e"), {"threaded_reply"}),
        ("another thread", reply_to(event_id("other")), {"threaded_reply"}),
        ("another channel", another_channel, {"threaded_reply"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        ("another task", head("task_name", "user-mention"), {"evidence_complete"}),
        ("silent", silent, {"answer_correct", "threaded_reply"}),
        (
            "second orchestrator",
            second_orchestrator,
            {"answer_correct", "threaded_reply", "evidence_complete"},
        ),
    ],
    "create-channel-invite-users": [
        ("no channel", no_channel, {"channel_created"}),
        ("two channels", two_channels, {"channel_created"}),
        ("another name", channel("name", "fix-pr-1234-2"), {"channel_created"}),
        ("a forum", channel("channel_type", "forum"), {"channel_shape"}),
        ("public", channel("visibility", "public"), {"channel_shape"}),
        ("archived", channel("archived", True), {"channel_shape"}),
        ("archived as a number", channel("archived", 0), {"channel_shape"}),
        ("for ever", channel("ttl_seconds", None), {"temporary_channel"}),
        ("a day", channel("ttl_seconds", 86_400), {"temporary_channel"}),
        ("one twice", member("benchmark-user-07", "member"), {"exact_membership"}),
        (
            "a sixth",
            member("benchmark-user-08", "member"),
            {"exact_membership", "expected_roles"},
        ),
        (
            "one short",
            without_member("benchmark-bot-08"),
            {"exact_membership", "expected_roles"},
        ),
        ("bot as member", member_role("benchmark-bot-03", "member"), {"expected_roles"}),
        ("agent as member", member_role(AGENT, "member"), {"expected_roles"}),
        ("59 rows", without_directory_row(30), {"evidence_complete"}),
        (
            "a target without key",
            directory_key(6, None),
            {"exact_membership", "expected_roles", "evidence_complete"},
        ),
        ("another task", head("task_name", "user-mention"), {"evidence_complete"}),
        (
            "second orchestrator",
            second_orchestrator,
            {"exact_membership", "expected_roles", "evidence_complete"},
        ),
    ],
    "interleaved-agent-reports": [
        ("a report missing", drop_report, {"reports_delivered"}),
        ("one report twice", one_report_twice, {"reports_delivered"}),
        ("reserve left out", last_reword("reserve 11, ", ""), {"inputs_complete"}),
        ("figure before its label", last_reword("South 23", "23 South"), {"inputs_complete"}),
        ("wrong result", last_reword("87", "109"), {"answer_correct"}),
        ("result goes on", last_reword("87", "870"), {"answer_correct"}),
        ("result unnamed", last_reword("Final value: ", "So "), {"answer_correct"}),
        ("name without tag", named_in_text, {"single_human_callback"}),
        (
            "a reporter woken",
            with_tag("p", key_of("Risk Sentinel")),
            {"reporters_not_rementioned"},
        ),
        (
            "a reporter spelled as called",
            last_reword("South", "@Ledger Scout South"),
            {"reporters_not_rementioned"},
        ),
        ("top level", without_tags("e"), {"reply_to_thread"}),
        ("reply to a report", reply_to(event_id("ledger-report")), {"reply_to_thread"}),
        ("on it first", says_first("On it."), {"evidence_complete"}),
        (
            "called twice",
            says_first("On it.", mentions=("Nora Isabel Grant",)),
            {"single_human_callback", "evidence_complete"},
        ),
        ("a fourth name", more_directory, {"evidence_complete"}),
        (
            "silent",
            silent,
            {
                "inputs_complete",
                "answer_correct",
                "single_human_callback",
                "reply_to_thread",
                "evidence_complete",
            },
        ),
    ],
    "cross-thread-requests": [
        ("wrong first result", first_reword("346", "345"), {"alpha_correct"}),
        ("first result goes on", first_reword("346", "3460"), {"alpha_correct"}),
        ("first label missing", first_reword("ALPHA", "Result"), {"alpha_correct"}),
        ("label touches", first_reword(": ", ""), {"alpha_correct"}),
        ("wrong second result", last_reword("41", "42"), {"beta_correct"}),
        ("second label behind", last_text("41: BETA"), {"beta_correct"}),
        ("a third message", says_more("Done with both."), {"thread_isolation"}),
        ("other label in reply", last_reword("BETA", "After alpha, BETA"), {"thread_isolation"}),
        ("name without tag", named_in_text, {"user_mentioned_twice"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        ("a second script", second_script, {"evidence_complete"}),
        (
            "one reply for both",
            merged_reply,
            {"beta_correct", "thread_isolation", "user_mentioned_twice"},
        ),
        (
            "both in the first thread",
            reply_to(event_id("task")),
            {"alpha_correct", "beta_correct", "thread_isolation", "user_mentioned_twice"},
        ),
        (
            "second at top level",
            without_tags("e"),
            {"beta_correct", "thread_isolation", "user_mentioned_twice"},
        ),
    ],
    "ambiguous-user-mention": [
        ("told twice", to_target_twice, {"target_notified_once"}),
        (
            "both told",
            says_first("ORCHID-72 approved", mentions=("taylor-observer",)),
            {"other_not_notified"},
        ),
        (
            "requester's message wakes the namesake",
            with_tag("p", key_of("taylor-observer")),
            {"other_not_notified"},
        ),
        ("another text", first_reword("approved", "is approved"), {"message_correct"}),
        ("small letters", first_reword("ORCHID", "Orchid"), {"message_correct"}),
        ("vague callback", last_reword("was sent", "is out"), {"user_callback"}),
        (
            "no callback of its own",
            callback_in_delivery,
            {"user_callback", "reply_to_thread"},
        ),
        ("name without tag", named_in_text, {"user_callback", "reply_to_thread"}),
        ("callback at top level", without_tags("e"), {"reply_to_thread"}),
        ("truncated", head("truncated", True), {"evidence_complete"}),
        ("namesake unknown", directory_key(1, None), {"evidence_complete"}),
        (
            "target unknown",
            directory_key(0, None),
            {"target_notified_once", "evidence_complete"},
        ),
        ("third identity", more_directory, {"evidence_complete"}),
    ],
}
"""By task: what happened, how, and which dimensions drop; those tied to them drop as well."""
