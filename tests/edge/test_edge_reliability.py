"""A verifier that fails never crashes, blocks or changes an answer; the report names the missing checks."""

import threading

import pytest

from groundwire.judge import VERIFIERS
from tests.edge.clients import grounding_added, post_chat
from tests.edge.upstream import Upstream, body_reply, chat_body, chat_events, stream_reply

CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": "The sky is blue on a clear day. Acme earned $4.2 million in 2023."}],
}
ANSWER = "The sky is blue on a clear day. Acme earned $4.2 million in 2023."
REWORDED = "On a clear day, the sky is blue. In 2023, Acme earned $4.2 million."


def failing(*_: object) -> None:
    raise ZeroDivisionError("a fault of the verifier")


def only(verifier: object) -> tuple:
    """Replace every verifier by this one."""
    return tuple((name, verifier) for name, _ in VERIFIERS)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_verifier_that_raises_changes_no_answer(upstream: Upstream, start_proxy, streamed: bool) -> None:
    proxy = start_proxy(verifiers=only(failing), stream={"tail_budget": "10s"})
    upstream.reply = stream_reply(chat_events(ANSWER)) if streamed else body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"stream": streamed})
    grounding = grounding_added(b"".join(upstream.reply.body), answer.body)
    assert (answer.status, answer.ended) == (200, True)
    assert (grounding["verdict"], grounding["score"]) == ("not_checked", None)
    assert "verifier_degraded" in grounding["flags"]
    assert grounding["degraded"]


def test_a_verifier_that_raises_hides_no_finding_of_another(upstream: Upstream, start_proxy) -> None:
    """Claims that it might have rejected are not labelled supported."""
    broken = tuple((name, failing if name == "numeric" else verifier) for name, verifier in VERIFIERS)
    proxy = start_proxy(verifiers=broken)
    upstream.reply = body_reply(chat_body(f"{REWORDED} The board said, “we shall never sell a single share”."))
    grounding = post_chat(proxy.port, CHAT).json()["grounding"]
    claims = grounding["choices"][0]["claims"]
    assert [claim["label"] for claim in claims] == ["not_checked", "not_checked", "unsupported"]
    assert [entry["verifier"] for entry in grounding["degraded"]] == ["numeric"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_verifier_that_takes_too_long_holds_up_no_answer(upstream: Upstream, start_proxy, streamed: bool) -> None:
    released = threading.Event()

    def endless(*_: object) -> None:
        released.wait(60)

    proxy = start_proxy(verifiers=only(endless), grounding={"timeout": "200ms"})
    upstream.reply = stream_reply(chat_events(ANSWER)) if streamed else body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"stream": streamed})
    released.set()
    assert grounding_added(b"".join(upstream.reply.body), answer.body)["verdict"] == "not_checked"


def test_too_much_to_verify_is_not_checked_and_still_answered(upstream: Upstream, start_proxy) -> None:
    """Overload drops checks, never traffic."""
    proxy = start_proxy(grounding={"queue": 1})
    upstream.reply = body_reply(chat_body(ANSWER))
    answers = [post_chat(proxy.port, CHAT) for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
