"""Plausible mistakes, each with exactly what it is known to lose."""

from __future__ import annotations

from workers.model import slips
from workers.model.profile import Profile, losses
from workers.model.slips import reworded, slipping

MISTAKES: dict[str, Profile] = {
    "sloppy": Profile(
        "answers rightly, top level and without mentions",
        slipping(slips.to_nobody),
        loses=losses(
            {
                "reply-to-thread": "reply_to_thread",
                "user-mention": "user_p_tagged",
                "read-named-path-outside-workspace": "",
                "memory-retrieval": "threaded_reply",
                "multiline-message": "reply_to_thread user_mentioned",
                "narrative-agent-names": "reply_to_thread user_mentioned",
                "create-channel-invite-users": "",
                "interleaved-agent-reports": "reply_to_thread single_human_callback",
                "cross-thread-requests": (
                    "alpha_correct beta_correct thread_isolation user_mentioned_twice"
                ),
                "ambiguous-user-mention": (
                    "target_notified_once message_correct user_callback reply_to_thread"
                ),
            }
        ),
    ),
    "distractor": Profile(
        "replies with all it has read and no answer",
        slips.distract,
        loses=losses(
            {
                "reply-to-thread": "answer_correct",
                "user-mention": "answer_correct",
                "memory-retrieval": "answer_correct",
                "read-named-path-outside-workspace": "",
            }
        ),
    ),
    "top_level": Profile(
        "answers rightly and hands back, in the channel instead of the thread",
        slipping(slips.to_the_channel),
        loses=losses(
            {
                "reply-to-thread": "reply_to_thread",
                "user-mention": "",
                "memory-retrieval": "threaded_reply",
            }
        ),
    ),
    "by_name": Profile(
        "writes the reader's name out and notifies nobody",
        slipping(slips.by_name),
        loses=losses({"user-mention": "user_p_tagged", "narrative-agent-names": "user_mentioned"}),
    ),
    "eager": Profile(
        "says that it begins before it answers",
        slipping(slips.with_an_announcement),
        loses=losses(
            {
                "reply-to-thread": "",
                "multiline-message": "evidence_complete",
                "narrative-agent-names": "evidence_complete",
                "interleaved-agent-reports": "evidence_complete",
                "cross-thread-requests": "thread_isolation",
            }
        ),
    ),
    "one_line": Profile(
        "turns line breaks into spaces",
        reworded(lambda content: " ".join(content.split())),
        loses=losses({"multiline-message": "layout_preserved real_newlines"}),
    ),
    "escaped": Profile(
        "spells line breaks as a backslash and an n",
        reworded(lambda content: content.replace("\n", "\\n")),
        loses=losses({"multiline-message": "layout_preserved real_newlines"}),
    ),
    "paraphraser": Profile(
        "says in its own words what was to be quoted",
        reworded(slips.paraphrase),
        loses=losses({"read-named-path-outside-workspace": "action_reported"}),
    ),
    "homebound": Profile(
        "reads no file outside its workspace",
        slips.stay_inside,
        loses=losses({"read-named-path-outside-workspace": "named_path_read action_reported"}),
    ),
    "waker": Profile(
        "mentions everybody whom the request names",
        slipping(slips.waking_the_named),
        loses=losses(
            {
                "narrative-agent-names": "bots_not_mentioned",
                "interleaved-agent-reports": "reporters_not_rementioned",
            }
        ),
    ),
    "namesakes": Profile(
        "mentions everybody who bears the addressee's name",
        slipping(slips.waking_namesakes),
        loses=losses({"ambiguous-user-mention": "other_not_notified"}),
    ),
    "generous": Profile(
        "invites the requester too",
        slipping(slips.with_the_requester),
        loses=losses({"create-channel-invite-users": "exact_membership expected_roles"}),
    ),
    "forgetful": Profile(
        "keeps the last report of a batch alone",
        slips.forget,
        loses=losses({"interleaved-agent-reports": "inputs_complete answer_correct"}),
    ),
    "merger": Profile(
        "answers two requests in one reply",
        slips.merge,
        loses=losses(
            {"cross-thread-requests": "beta_correct thread_isolation user_mentioned_twice"}
        ),
    ),
}
"""Profiles that make a mistake, by name."""
