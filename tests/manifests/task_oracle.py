"""The rules of the ten tasks a second time: slow, plain, and sharing nothing with the kit.

It is meant for small transcripts whose parts have their right shapes; a part may be absent or null.
Patterns are written as one would say them, at whatever cost.
"""

from __future__ import annotations

import re
from typing import Any

from tests.manifests.task_verifiers import ACTION, CHECK_ID

Row = dict[str, Any]
Scores = dict[str, float]


def judge(task: str, evidence: Row) -> Scores:
    """Dimensions and reward."""
    dims = {name: float(bool(value)) for name, value in RULES[task](evidence).items()}
    dims["reward"] = 1.0 if all(value == 1.0 for value in dims.values()) else 0.0
    return dims


def reply_to_thread(e: Row) -> Row:
    m = final_after_root(e)
    root, channel = e.get("task_event_id"), channel_of(e)
    wanted = [("revenue", 160811), ("expense", 84462), ("profit", 374470)]
    right = 0
    for label, figure in wanted:
        hits = 0
        for line in text(m).splitlines():
            near = [n for n in amounts(line) if figure - 1 <= n <= figure + 1]
            if label in line.casefold() and near:
                hits += 1
        right += hits > 0
    return {
        "answer_correct": right == 3,
        "reply_to_thread": m
        and m.get("reply_to_event_id") == root
        and ["e", root, "", "reply"] in tags(m),
        "same_channel": m and m.get("channel_id") == channel and ["h", channel] in tags(m),
        "expected_author": m,
        "evidence_complete": basics(e)
        and e.get("truncated") is False
        and type(root) is str
        and root_count(e) == 1
        and type(channel) is str
        and m,
    }


def user_mention(e: Row) -> Row:
    m = final_after_root(e)
    root, channel = e.get("task_event_id"), channel_of(e)
    users = [(n, i) for n, i in (e.get("identities") or {}).items() if i.get("role") == "user"]
    one = len(users) == 1
    key = users[0][1].get("pubkey") if one else None
    return {
        "answer_correct": [n for n in amounts(text(m)) if 5327 <= n <= 5329],
        "user_p_tagged": m
        and type(key) is str
        and [tag for tag in tags(m) if len(tag) >= 2 and tag[0] == "p" and tag[1] == key]
        and key in mentioned(m),
        "three_word_user": one and users[0][0] == "John Vincent Doe",
        "same_channel": m and m.get("channel_id") == channel and ["h", channel] in tags(m),
        "expected_author": m,
        "evidence_complete": basics(e, "user-mention")
        and type(root) is str
        and root_count(e) == 1
        and type(channel) is str
        and one
        and m,
    }


def named_path(e: Row) -> Row:
    m = final_after_root(e)
    root, channel = e.get("task_event_id"), channel_of(e)

    def fold(words: str) -> str:
        return re.sub(r"\s+", " ", words).strip(" .!").casefold()

    return {
        "named_path_read": m and CHECK_ID in text(m),
        "action_reported": m and fold(ACTION) in fold(text(m)),
        "same_channel": m and m.get("channel_id") == channel and ["h", channel] in tags(m),
        "expected_author": m,
        "evidence_complete": basics(e, "read-named-path-outside-workspace")
        and type(root) is str
        and root_count(e) == 1
        and type(channel) is str
        and m,
    }


def multiline(e: Row) -> Row:
    mine = agent_messages(e)
    m = mine[-1] if mine else None
    key = named(e, "Eleanor June Brooks")
    block = "\n".join(
        [
            "Release readiness",
            "",
            "- API: ready",
            "- Database: ready",
            "- Rollback: tested",
            "",
            "Owner: Platform Operations",
        ]
    )
    return {
        "layout_preserved": block in text(m),
        "real_newlines": m and chr(92) + "n" not in text(m) and text(m).count("\n") > 5,
        "reply_to_thread": m and m.get("reply_to_event_id") == e.get("task_event_id"),
        "user_mentioned": m and key in mentioned(m),
        "evidence_complete": basics(e, "multiline-message")
        and type(e.get("task_event_id")) is str
        and type(channel_of(e)) is str
        and type(key) is str
        and len(mine) == 1,
    }


def narrative(e: Row) -> Row:
    mine = agent_messages(e)
    m = mine[-1] if mine else None
    return {
        "status_correct": re.search(r"(?i)Aurora Audit Bot[^.\n]*completed", text(m))
        and re.search(r"(?i)Beacon Deploy Bot[^.\n]*idle", text(m)),
        "bots_not_mentioned": asleep(e, ["Aurora Audit Bot", "Beacon Deploy Bot"]),
        "user_mentioned": m and named(e, "Maya Elise Chen") in mentioned(m),
        "reply_to_thread": m and m.get("reply_to_event_id") == e.get("task_event_id"),
        "evidence_complete": basics(e, "narrative-agent-names")
        and len(by(e, "name")) == 2
        and len(mine) == 1,
    }


def memory(e: Row) -> Row:
    mine = agent_messages(e)
    root, channel = e.get("task_event_id"), channel_of(e)
    replies = [
        m for m in mine if m.get("channel_id") == channel and m.get("reply_to_event_id") == root
    ]
    said = replies or mine
    judged = said[-1] if said else None
    pattern = r"(?<![A-Za-z0-9_])-?\d[\d,]*(?:\.\d+)?"
    found = {float(n.replace(",", "")) for n in re.findall(pattern, text(judged))}
    return {
        "answer_correct": found in ({352345.0}, {352345.0, 2024.0}),
        "threaded_reply": replies,
        "evidence_complete": basics(e, "memory-retrieval")
        and type(root) is str
        and type(channel) is str,
    }


def channel(e: Row) -> Row:
    hits = [c for c in e.get("observed_channels") or [] if c.get("name") == "fix-pr-1234"]
    c = hits[0] if len(hits) == 1 else None
    people = by(e, "name")
    users = [people.get(f"benchmark-user-{n}") for n in ("07", "19", "42")]
    bots = [people.get(f"benchmark-bot-{n}") for n in ("03", "08")]
    six = [agent(e), *users, *bots]
    known = c is not None and None not in six
    roles = [agent(e), "owner"], *([k, "member"] for k in users), *([k, "bot"] for k in bots)
    rows = [[r.get("pubkey"), r.get("role")] for r in (c or {}).get("members") or []]
    return {
        "channel_created": c is not None,
        "channel_shape": c is not None
        and c.get("channel_type") == "stream"
        and c.get("visibility") == "private"
        and c.get("archived") is False,
        "temporary_channel": c is not None and c.get("ttl_seconds") == 3600,
        "exact_membership": known and sorted(r[0] or "" for r in rows) == sorted(six),
        "expected_roles": known and dict(rows) == dict(roles),
        "evidence_complete": e.get("schema_version") == 1
        and len(orchestrators(e)) == 1
        and e.get("task_name") == "create-channel-invite-users"
        and len(e.get("directory") or []) == 60
        and len(people) == 60
        and [r.get("role") for r in e.get("directory") or []].count("user") == 50
        and [r.get("role") for r in e.get("directory") or []].count("bot") == 10
        and None not in users + bots,
    }


def reports(e: Row) -> Row:
    mine = agent_messages(e)
    m = mine[-1] if mine else None
    key = named(e, "Nora Isabel Grant")
    calls = [x for x in mine if key is not None and key in mentioned(x)]
    ids = {r.get("label"): r.get("event_id") for r in e.get("scripted_events") or []}
    three = [ids.get(x) for x in ("ledger-report", "risk-report", "operations-report")]
    present = [x.get("id") for x in messages(e)]
    return {
        "reports_delivered": None not in three
        and len(set(three)) == 3
        and all(x in present for x in three),
        "inputs_complete": re.search(r"(?i)north\D+17", text(m))
        and re.search(r"(?i)south\D+23", text(m))
        and re.search(r"(?i)reserve\D+11", text(m))
        and re.search(r"(?i)multiplier\D+3", text(m)),
        "answer_correct": re.search(r"(?i)(final|result|forecast|=)\D*87(\D|$)", text(m)),
        "single_human_callback": len(calls) == 1 and calls[0] is m,
        "reporters_not_rementioned": asleep(e, ["Ledger Scout", "Risk Sentinel", "Ops Forecaster"]),
        "reply_to_thread": m and m.get("reply_to_event_id") == e.get("task_event_id"),
        "evidence_complete": basics(e, "interleaved-agent-reports")
        and len(by(e, "name")) == 3
        and len(mine) == 1,
    }


def two_requests(e: Row) -> Row:
    mine = agent_messages(e)
    key = named(e, "Priya Simone Patel")
    scripts = [r for r in e.get("scripted_events") or [] if r.get("label") == "beta-request"]
    first = [m for m in mine if m.get("reply_to_event_id") == e.get("task_event_id")]
    second = [
        m for m in mine if scripts and m.get("reply_to_event_id") == scripts[-1].get("event_id")
    ]
    a = first[-1] if first else None
    b = second[-1] if second else None
    return {
        "alpha_correct": re.search(r"(?i)ALPHA\D+346(\D|$)", text(a)),
        "beta_correct": re.search(r"(?i)BETA\D+41(\D|$)", text(b)),
        "thread_isolation": a
        and b
        and len(mine) == 2
        and a.get("id") != b.get("id")
        and not re.search(r"(?i)beta", text(a))
        and not re.search(r"(?i)alpha", text(b)),
        "user_mentioned_twice": key is not None
        and a
        and b
        and key in mentioned(a)
        and key in mentioned(b),
        "evidence_complete": basics(e, "cross-thread-requests")
        and type(e.get("task_event_id")) is str
        and len(scripts) == 1
        and type(scripts[0].get("event_id")) is str,
    }


def namesakes(e: Row) -> Row:
    mine = agent_messages(e)
    people = by(e, "identity_id")
    target, other = people.get("taylor-release-captain"), people.get("taylor-observer")
    user = named(e, "Olivia Grace Park")
    sent = [m for m in mine if target is not None and target in mentioned(m)]
    leaked = [m for m in mine if other is not None and other in mentioned(m)]
    told = [m for m in mine if user is not None and user in mentioned(m) and m not in sent]
    d = sent[0] if len(sent) == 1 else None
    c = told[-1] if told else None
    root = e.get("task_event_id")
    return {
        "target_notified_once": d,
        "other_not_notified": not leaked,
        "message_correct": "ORCHID-72 approved" in text(d),
        "user_callback": re.search(r"sent|notified|delivered", text(c).casefold()),
        "reply_to_thread": d
        and c
        and d.get("reply_to_event_id") == root
        and c.get("reply_to_event_id") == root,
        "evidence_complete": basics(e, "ambiguous-user-mention")
        and len(people) == 2
        and target is not None
        and other is not None
        and target != other,
    }


def basics(e: Row, name: str | None = None) -> bool:
    return (
        e.get("schema_version") == 1
        and len(orchestrators(e)) == 1
        and name in (None, e.get("task_name"))
        and e.get("truncated") is False
    )


def orchestrators(e: Row) -> list[Row]:
    return [i for i in (e.get("identities") or {}).values() if i.get("role") == "orchestrator"]


def agent(e: Row) -> Any:
    found = orchestrators(e)
    return found[0].get("pubkey") if len(found) == 1 else None


def messages(e: Row) -> list[Row]:
    return e.get("messages") or []


def agent_messages(e: Row) -> list[Row]:
    key = agent(e)
    return [m for m in messages(e) if key is not None and m.get("pubkey") == key]


def root_count(e: Row) -> int:
    return sum(m.get("id") == e.get("task_event_id") for m in messages(e))


def final_after_root(e: Row) -> Row | None:
    found = None
    passed = root_count(e) != 1
    for m in messages(e):
        if passed and agent(e) is not None and m.get("pubkey") == agent(e):
            found = m
        if m.get("id") == e.get("task_event_id"):
            passed = True
    return found


def named(e: Row, name: str) -> Any:
    return ((e.get("identities") or {}).get(name) or {}).get("pubkey")


def by(e: Row, field: str) -> Row:
    rows = e.get("directory") or []
    return {row[field]: row.get("pubkey") for row in rows if row.get(field) is not None}


def asleep(e: Row, names: list[str]) -> bool:
    keys = [by(e, "name").get(name) for name in names]
    if None in keys or len(set(keys)) < len(keys):
        return False
    for m in agent_messages(e):
        for name, key in zip(names, keys, strict=True):
            if key in mentioned(m) or "@" + name in text(m):
                return False
    return True


def channel_of(e: Row) -> Any:
    return (e.get("trial") or {}).get("channel_id")


def text(m: Row | None) -> str:
    return (m or {}).get("content") or ""


def tags(m: Row) -> list[Any]:
    return m.get("tags") or []


def mentioned(m: Row) -> list[Any]:
    return m.get("mentioned_pubkeys") or []


def amounts(line: str) -> list[float]:
    found = re.findall(r"(?<![A-Za-z0-9_])-?\$?\d[\d,]*(?:\.\d+)?", line)
    return [float(n.replace(",", "").replace("$", "")) for n in found]


RULES = {
    "reply-to-thread": reply_to_thread,
    "user-mention": user_mention,
    "read-named-path-outside-workspace": named_path,
    "multiline-message": multiline,
    "narrative-agent-names": narrative,
    "memory-retrieval": memory,
    "create-channel-invite-users": channel,
    "interleaved-agent-reports": reports,
    "cross-thread-requests": two_requests,
    "ambiguous-user-mention": namesakes,
}
