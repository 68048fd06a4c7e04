"""Headers that pass, both ways."""

import re

import pytest

from groundwire.upstream.upstream import KEYS as KEY_HEADERS
from groundwire.upstream.upstream import HeaderRules, allow_list, x_api_key
from groundwire.wire import Headers, header, without

HOP_BY_HOP = (
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
)
FORWARDING = ("forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "via")
OURS = ("x-grounding-mode", "x-grounding-subject", "x-grounding-anything")
COOKIES = ("cookie", "set-cookie")
KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
END_TO_END = (
    *("accept", "accept-encoding", "content-type", "user-agent", "x-request-id", "openai-organization", "openai-beta"),
    *("openai-project", "x-stainless-lang", "idempotency-key", "traceparent", "anthropic-version", "date", "x-custom"),
)


def headers(*names: str) -> Headers:
    return tuple((name.encode(), b"value of " + name.encode()) for name in names)


def request_headers(sent: Headers, key: str | None, allowed: re.Pattern[str] | None = None) -> Headers:
    return HeaderRules(allowed).outgoing(sent, key)


def response_headers(sent: Headers, allowed: re.Pattern[str] | None = None) -> Headers:
    return HeaderRules(response=allowed).incoming(sent)


@pytest.mark.parametrize("name", END_TO_END)
def test_end_to_end_headers_pass_both_ways(name: str) -> None:
    assert request_headers(headers(name), None) == headers(name)
    assert response_headers(headers(name)) == headers(name)


@pytest.mark.parametrize("name", [*HOP_BY_HOP, *FORWARDING, *OURS, *COOKIES, "host", "expect", "content-length"])
def test_these_never_reach_an_upstream(name: str) -> None:
    assert request_headers(headers(name, "accept"), None) == headers("accept")


@pytest.mark.parametrize("name", [*HOP_BY_HOP, *OURS, *COOKIES, "host", "via", "forwarded"])
def test_these_never_reach_a_client(name: str) -> None:
    assert response_headers(headers(name, "content-length")) == headers("content-length")


@pytest.mark.parametrize("name", KEYS)
def test_a_clients_key_goes_upstream_only_where_none_is_configured(name: str) -> None:
    assert request_headers(headers(name), None) == headers(name)
    assert request_headers(headers(name, "accept"), "secret") == (
        *headers("accept"),
        (b"authorization", b"Bearer secret"),
    )


def test_headers_named_by_connection_are_hop_by_hop() -> None:
    sent = ((b"connection", b"close, X-Trace"), (b"x-trace", b"1"), (b"connection", b"x-other"), (b"x-other", b"2"))
    assert request_headers((*sent, (b"x-kept", b"3")), None) == ((b"x-kept", b"3"),)
    assert response_headers((*sent, (b"x-kept", b"3"))) == ((b"x-kept", b"3"),)


def test_repeated_headers_keep_their_number_and_order() -> None:
    sent: Headers = ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"a", b""))
    assert request_headers(sent, None) == response_headers(sent) == sent


def test_names_of_responses_are_read_in_any_case() -> None:
    assert response_headers(((b"Set-Cookie", b"x"), (b"Content-Type", b"y"), (b"X-Grounding-Id", b"z"))) == (
        (b"content-type", b"y"),
    )


def test_the_first_of_a_header_is_its_value() -> None:
    assert header(((b"a", b"1"), (b"a", b"2")), b"a") == b"1"
    assert header((), b"a") is None


ALLOWED = allow_list(["Accept", "x-trace-*", "cookie", "host", "authorization", "x-grounding-mode", "connection", "te"])


def test_only_listed_headers_and_those_that_describe_the_body_pass() -> None:
    sent = headers("accept", "x-trace-id", "user-agent", "content-type", "content-encoding", "x-request-id")
    passed = headers("accept", "x-trace-id", "content-type", "content-encoding")
    assert request_headers(sent, None, ALLOWED) == response_headers(sent, ALLOWED) == passed


def test_a_list_can_let_pass_what_would_not() -> None:
    assert request_headers(headers("cookie"), None, ALLOWED) == headers("cookie")
    assert request_headers(headers("authorization"), None, ALLOWED) == headers("authorization")
    assert request_headers(headers("authorization"), None, allow_list([])) == ()


@pytest.mark.parametrize("name", ["host", "x-grounding-mode", "connection", "te", "content-length"])
def test_these_pass_with_no_list(name: str) -> None:
    assert request_headers(headers(name), None, ALLOWED) == ()
    assert name == "content-length" or response_headers(headers(name), ALLOWED) == ()


def test_a_list_does_not_let_a_clients_key_pass_where_one_is_configured() -> None:
    assert request_headers(headers("authorization"), "secret", ALLOWED) == ((b"authorization", b"Bearer secret"),)


def test_headers_of_the_settings_take_the_place_of_the_clients() -> None:
    rules = HeaderRules(added=((b"openai-organization", b"ours"), (b"api-key", b"secret")))
    sent = headers("openai-organization", "accept", "api-key")
    assert rules.outgoing(sent, None) == (*headers("accept"), *rules.added)
    assert rules.incoming(headers("date")) == headers("date")


def test_the_clients_keys_can_be_left_behind() -> None:
    assert without(headers(*KEYS, "accept"), KEY_HEADERS) == headers("accept")


def test_an_assumed_header_is_added_only_where_none_was_sent() -> None:
    rules = HeaderRules(assumed=((b"anthropic-version", b"1"),), key_header=x_api_key)
    assert rules.outgoing(headers("accept"), "secret") == (
        *headers("accept"),
        (b"x-api-key", b"secret"),
        (b"anthropic-version", b"1"),
    )
    assert rules.outgoing(headers("anthropic-version", "authorization"), "secret") == (
        *headers("anthropic-version"),
        (b"x-api-key", b"secret"),
    )
