"""The profiles of the scripted model, each with a result that is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from workers.model.mistakes import MISTAKES
from workers.model.play import Script
from workers.model.profile import Profile, Service, losses
from workers.model.scripts import NOTHING_TO_DO, SENT, reply, requests_of, solve
from workers.model.wake import Wake

PREFIX = "scripted-"
REFUSAL = "I am not able to help with this request."


def refuse(wakes: Sequence[Wake]) -> Script:
    """A proper reply to every request, with a refusal in it."""
    words = NOTHING_TO_DO
    for wake in requests_of(wakes):
        yield reply(wake, REFUSAL)
        words = SENT
    return words


def stay_silent(_: Sequence[Wake]) -> Script:
    """The end of the turn, and nothing before it."""
    yield from ()
    return NOTHING_TO_DO


PROFILES: dict[str, Profile] = {
    "solver": Profile("answers rightly, in the thread, and hands back", solve),
    "refuser": Profile(
        "refuses in a proper reply",
        refuse,
        loses=losses(
            {
                "reply-to-thread": "answer_correct",
                "user-mention": "answer_correct",
                "read-named-path-outside-workspace": "named_path_read action_reported",
                "multiline-message": "layout_preserved real_newlines",
                "narrative-agent-names": "status_correct",
                "memory-retrieval": "answer_correct",
                "create-channel-invite-users": (
                    "channel_created channel_shape temporary_channel exact_membership "
                    "expected_roles"
                ),
                "interleaved-agent-reports": "inputs_complete answer_correct",
                "cross-thread-requests": "alpha_correct beta_correct",
                "ambiguous-user-mention": (
                    "target_notified_once message_correct user_callback reply_to_thread"
                ),
            }
        ),
    ),
    "silent": Profile("ends its turn without a message", stay_silent),
    "slow": Profile("the solver, seconds late with every answer", solve, Service.SLOW),
    "rate_limited": Profile("429 to every request", solve, Service.RATE_LIMITED),
    "broken": Profile("success with a body that breaks off", solve, Service.BROKEN),
    **MISTAKES,
}


def profile_of(model: str) -> Profile | None:
    """The profile that a model's name selects, ``scripted-<profile>``; None: there is none."""
    return PROFILES.get(model.removeprefix(PREFIX)) if model.startswith(PREFIX) else None
