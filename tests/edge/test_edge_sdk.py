"""Results of the official SDK through the proxy are those it gets directly, plus grounding."""

import asyncio
import threading

import openai
import pytest
from pydantic import BaseModel

from tests.edge.clients import Comparison, async_sdk, end_to_end, sdk
from tests.edge.upstream import (
    DONE,
    Reply,
    Upstream,
    as_event,
    body_reply,
    byte_by_byte,
    chat_body,
    chat_events,
    completion_reply,
    delta_events,
    error_reply,
    gzip_reply,
    stream_reply,
    tool_call_events,
    tool_call_message,
)

CONTEXT = {"role": "system", "content": "The sky is blue. Grass is green, and it is mown in May."}
MESSAGES = [CONTEXT, {"role": "user", "content": "Which colour?"}]
CHAT = {"model": "gpt-4o-mini", "messages": MESSAGES}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
                "required": ["city", "unit"],
                "additionalProperties": False,
            },
        },
    }
]
ANSWER = "The sky is blue, 🟦 “as ever”. Grass is green."

BODIES = {
    "openai": chat_body(ANSWER),
    "ollama": chat_body(ANSWER, shape="ollama"),
    "vllm": chat_body(ANSWER, shape="vllm"),
    "two choices": chat_body("The sky is blue.", "It is green."),
    "tool call": chat_body("", message=tool_call_message(), finish_reason="tool_calls"),
    "logprobs": chat_body(ANSWER, logprobs=True),
    "refusal": chat_body("", message={"content": None, "refusal": "I cannot help with that."}),
    "reasoning": chat_body(ANSWER, message={"reasoning": "The user asks…", "reasoning_content": "The user asks…"}),
    "cut by length": chat_body("The sky is", finish_reason="length"),
    "content filter": chat_body("", finish_reason="content_filter"),
    "audio": chat_body(
        "", message={"content": None, "audio": {"id": "a", "data": "AAAA", "expires_at": 1, "transcript": "Hi."}}
    ),
    "unknown fields": chat_body(ANSWER, message={"x_new": {"deep": [1, 2.50, None]}}),
    "no choices": chat_body(),
    "2 MB": chat_body("The sky is blue. " * 120_000),
}


def deltas(*items: tuple[int, dict, str | None]) -> tuple[bytes, ...]:
    return delta_events(items)


STREAMS = {
    "openai": chat_events(ANSWER),
    "ollama": chat_events(ANSWER, shape="ollama"),
    "vllm": chat_events(ANSWER, shape="vllm"),
    "usage": chat_events(ANSWER, include_usage=True),
    "usage of ollama": chat_events(ANSWER, shape="ollama", include_usage=True),
    "two choices": chat_events("The sky is blue.", "It is green, I would say, and mown in May."),
    "two choices and usage": chat_events("The sky is blue.", "It is green, I say.", include_usage=True),
    "tool call": tool_call_events(),
    "tool call and usage": tool_call_events(include_usage=True),
    "logprobs": chat_events(ANSWER, logprobs=True),
    "refusal": deltas(
        (0, {"role": "assistant", "refusal": "I "}, None), (0, {"refusal": "cannot."}, None), (0, {}, "stop")
    ),
    "reasoning": deltas(
        (0, {"reasoning": "Hm", "reasoning_content": "Hm"}, None), (0, {"content": "Blue."}, None), (0, {}, "stop")
    ),
    "unknown fields": deltas(
        (0, {"content": "Blue.", "x_new": {"deep": [1, None]}}, None), (0, {"x_end": True}, "stop")
    ),
    "no done": chat_events(ANSWER, done=False),
    "byte by byte": byte_by_byte(b"".join(chat_events("Blå 🟦\u2028 sky."))),
    "in one packet": (b"".join(chat_events(ANSWER)),),
    "crlf": tuple(event.replace(b"\n", b"\r\n") for event in chat_events(ANSWER)),
    "no space": tuple(event.replace(b"data: ", b"data:") for event in chat_events(ANSWER)),
    "ids and comments": tuple(b": ping\nid: 7\nretry: 9\n" + event for event in chat_events(ANSWER)),
    "2 MB": chat_events("The sky is blue. " * 500 + "x" * 2_000_000),
    "error event": (
        *chat_events("The sky")[:2],
        as_event({"error": {"message": "Lost.", "type": "server_error", "code": None, "param": None}}),
    ),
    "malformed event": (*chat_events("The sky")[:2], b'data: {"id": "chatcmpl\n\n', DONE),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_whole_answer_is_the_same(upstream: Upstream, compare: Comparison, name: str) -> None:
    upstream.reply = body_reply(BODIES[name])
    outcome = compare(lambda client: client.chat.completions.create(**CHAT))
    assert len(outcome.groundings) == 1


@pytest.mark.parametrize("name", STREAMS)
def test_a_streamed_answer_is_the_same_chunk_by_chunk(upstream: Upstream, compare: Comparison, name: str) -> None:
    upstream.reply = stream_reply(STREAMS[name])
    outcome = compare(
        lambda client: client.chat.completions.create(
            **CHAT,
            n=2 if "choices" in name else 1,
            stream=True,
            stream_options={"include_usage": "usage" in name},
        )
    )
    assert len(outcome.groundings) == (outcome.error is None)


@pytest.mark.parametrize("name", ["openai", "tool call", "2 MB"])
def test_a_compressed_answer_is_the_same(upstream: Upstream, compare: Comparison, name: str) -> None:
    upstream.reply = gzip_reply(body_reply(BODIES[name]))
    assert len(compare(lambda client: client.chat.completions.create(**CHAT)).groundings) == 1
    upstream.reply = gzip_reply(stream_reply(STREAMS[name]))
    assert len(compare(lambda client: client.chat.completions.create(**CHAT, stream=True)).groundings) == 1


@pytest.mark.parametrize(
    "request_fields",
    [
        {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"}]},
        {"user": "user-1", "metadata": {"team": "a"}, "store": True, "service_tier": "flex", "seed": 7},
        {"extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "nested": {"grounding": {}}}},
        {"temperature": 0.30000000000000004, "logit_bias": {"50256": -100}, "stop": ["\n\n", "é"]},
        {"extra_query": {"api-version": "2024-10-21", "q": "a b&c"}, "extra_headers": {"x-Team": "b", "x-empty": ""}},
        {"logprobs": True, "top_logprobs": 3, "n": 2, "parallel_tool_calls": False},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0=", "detail": "low"}},
                        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                        {"type": "file", "file": {"file_id": "file-1"}},
                    ],
                }
            ]
        },
        {
            "tools": TOOLS,
            "tool_choice": "auto",
            "messages": [
                *MESSAGES,
                {"role": "assistant"} | tool_call_message(),
                {"role": "tool", "tool_call_id": "call_1", "content": '{"celsius": 7}'},
            ],
        },
    ],
    ids=["roles", "bookkeeping", "unknown", "odd values", "query and headers", "choices", "media", "tools"],
)
def test_a_request_arrives_as_it_was_sent(compare: Comparison, request_fields: dict) -> None:
    compare(lambda client: client.chat.completions.create(**(CHAT | request_fields)))
    compare(lambda client: client.chat.completions.create(**(CHAT | request_fields), stream=True))


class Weather(BaseModel):
    city: str
    degrees: float


def test_structured_output_is_parsed_as_before(upstream: Upstream, compare: Comparison) -> None:
    upstream.reply = body_reply(chat_body('{"city": "Oslo", "degrees": 7.5}'))
    outcome = compare(lambda client: client.chat.completions.parse(**CHAT, response_format=Weather))
    assert outcome.values[0]["choices"][0]["message"]["parsed"] == {"city": "Oslo", "degrees": 7.5}


STREAM_HELPERS = {
    "text": (chat_events(ANSWER), {}),
    "usage": (chat_events(ANSWER, include_usage=True), {"stream_options": {"include_usage": True}}),
    "two choices": (
        chat_events("Blue.", "Green, I say.", include_usage=True),
        {"n": 2, "stream_options": {"include_usage": True}},
    ),
    "tools": (tool_call_events(include_usage=True), {"tools": TOOLS, "stream_options": {"include_usage": True}}),
    "parsed": (chat_events('{"city": "Oslo", "degrees": 7.5}'), {"response_format": Weather}),
    "logprobs": (chat_events(ANSWER, logprobs=True), {"logprobs": True}),
}


@pytest.mark.parametrize("name", STREAM_HELPERS)
def test_the_stream_helper_sees_the_same_events(upstream: Upstream, compare: Comparison, name: str) -> None:
    events, options = STREAM_HELPERS[name]
    upstream.reply = stream_reply(events)

    def call(client: openai.OpenAI) -> dict:
        with client.chat.completions.stream(**CHAT, **options) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion().model_dump(warnings=False)
        final.pop("grounding", None)
        return {"kinds": kinds, "final": final}

    final = compare(call).values[0]["final"]
    assert ("include_usage" in str(options)) == (final["usage"] is not None)


def test_the_raw_response_has_the_same_headers(upstream: Upstream, compare: Comparison) -> None:
    kept = (("x-request-id", "req_1"), ("openai-processing-ms", "12"), ("x-ratelimit-remaining-requests", "9"))
    upstream.reply = body_reply(chat_body(ANSWER), headers=kept)

    def call(client: openai.OpenAI) -> dict:
        raw = client.chat.completions.with_raw_response.create(**CHAT)
        headers = {name: raw.headers.get(name) for name in ("content-type", *dict(kept))}
        return {"status": raw.status_code, "headers": headers, "id": raw.request_id, "content": raw.parse().choices}

    assert compare(call).values[0]["headers"]["x-request-id"] == "req_1"


def test_a_streamed_raw_response_gives_the_same_lines(upstream: Upstream, compare: Comparison) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))

    def call(client: openai.OpenAI) -> list[str]:
        with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as response:
            return [line for line in response.iter_lines() if '"finish_reason":"stop"' not in line]

    assert compare(call).values[0]


def test_the_async_client_gets_the_same(upstream: Upstream, proxy) -> None:
    async def ask(base_url: str) -> tuple[object, list[object]]:
        async with async_sdk(base_url) as client:
            whole = (await client.chat.completions.create(**CHAT)).model_dump()
            chunks = [chunk.model_dump() async for chunk in await client.chat.completions.create(**CHAT, stream=True)]
        for value in (whole, *chunks):
            value.pop("grounding", None)
        return whole, chunks

    assert asyncio.run(ask(proxy.base_url)) == asyncio.run(ask(upstream.base_url))


def test_many_at_once_each_get_their_own(upstream: Upstream, proxy) -> None:
    def say_it_back(received) -> Reply:
        asked = received.json()
        text = f"You said {asked['messages'][0]['content']}, I think."
        return stream_reply(chat_events(text)) if asked.get("stream") else body_reply(chat_body(text))

    upstream.reply = say_it_back

    async def ask(client: openai.AsyncOpenAI, i: int) -> str:
        request = {"model": "m", "messages": [{"role": "user", "content": f"word{i}"}]}
        if i % 2:
            return (await client.chat.completions.create(**request)).choices[0].message.content or ""
        stream = await client.chat.completions.create(**request, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def ask_all() -> list[str]:
        async with async_sdk(proxy.base_url) as client:
            return await asyncio.gather(*(ask(client, i) for i in range(40)))

    assert asyncio.run(ask_all()) == [f"You said word{i}, I think." for i in range(40)]


def test_threads_share_one_client(upstream: Upstream, client: openai.OpenAI) -> None:
    answers: list[str | None] = []

    def ask() -> None:
        answers.append(client.chat.completions.create(**CHAT).choices[0].message.content)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert answers == ["The sky is blue."] * 8


ERRORS = {
    400: (openai.BadRequestError, "invalid_request_error", "unsupported_value"),
    401: (openai.AuthenticationError, "invalid_request_error", "invalid_api_key"),
    403: (openai.PermissionDeniedError, "invalid_request_error", "unsupported_country"),
    404: (openai.NotFoundError, "invalid_request_error", "model_not_found"),
    409: (openai.ConflictError, "conflict", None),
    422: (openai.UnprocessableEntityError, "invalid_request_error", None),
    429: (openai.RateLimitError, "requests", "rate_limit_exceeded"),
    500: (openai.InternalServerError, "server_error", None),
    503: (openai.InternalServerError, "overloaded", "overloaded"),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", ERRORS)
def test_an_upstream_error_is_the_same_error(upstream: Upstream, compare: Comparison, status: int, streamed) -> None:
    kind, type_, code = ERRORS[status]
    upstream.reply = error_reply(status, "No, “sorry”.", type=type_, code=code, param="x").with_headers(
        ("retry-after", "7"), ("retry-after-ms", "7000"), ("x-request-id", "req_9"), ("x-should-retry", "false")
    )
    error = compare(lambda client: client.chat.completions.create(**CHAT, stream=streamed)).error
    assert error is not None
    assert (error[0], error[1], error[3], error[5]) == (kind, status, code, type_)
    assert ("retry-after", "7") in error[-1]
    assert ("x-request-id", "req_9") in error[-1]


@pytest.mark.parametrize("status", [500, 502, 404])
def test_an_error_page_in_html_is_passed_on(upstream: Upstream, compare: Comparison, status: int) -> None:
    upstream.reply = Reply((b"<html>bad <b>gateway</b></html>",), status, (("content-type", "text/html"),))
    error = compare(lambda client: client.chat.completions.create(**CHAT)).error
    assert error is not None
    assert error[1] == status


def test_retry_after_is_obeyed_by_the_sdk(upstream: Upstream, proxy) -> None:
    """The proxy retries nothing by itself; the SDK does, and reports it."""
    replies = [
        error_reply(429, "Slow down.", type="requests", code="rate_limit_exceeded").with_headers(("retry-after", "0")),
        body_reply(chat_body(ANSWER)),
    ]
    upstream.reply = lambda _: replies.pop(0)
    with sdk(proxy.base_url, max_retries=1) as client:
        assert client.chat.completions.create(**CHAT).choices[0].message.content == ANSWER
    assert [request.header("x-stainless-retry-count") for request in upstream.requests] == ["0", "1"]


def test_a_failed_call_is_not_retried(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.reply = error_reply(503, "Busy.", type="overloaded")
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**CHAT)
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_older_completions_are_the_same(upstream: Upstream, compare: Comparison, streamed: bool) -> None:
    upstream.reply = completion_reply(["The sky is blue. It is."], stream=streamed)
    prompt = {"model": "gpt-3.5-turbo-instruct", "prompt": "Facts: the sky is blue.\n\nWhich colour?"}
    outcome = compare(lambda client: client.completions.create(**prompt, stream=streamed, suffix="!", echo=False))
    assert len(outcome.groundings) == 1


@pytest.mark.parametrize(
    "options", [{}, {"encoding_format": "float"}, {"dimensions": 3}], ids=["default", "float", "dims"]
)
def test_embeddings_are_the_same(compare: Comparison, options: dict) -> None:
    outcome = compare(lambda client: client.embeddings.create(model="embed", input=["sky", "grass"], **options))
    assert not outcome.groundings
    assert outcome.values[0]["data"][0]["embedding"][:2] == [0.25, -0.5]


def test_one_model_is_the_same(compare: Comparison) -> None:
    assert compare(lambda client: client.models.retrieve("llama3.2")).values[0]["id"] == "llama3.2"


def test_models_are_listed(upstream: Upstream, client: openai.OpenAI, direct: openai.OpenAI) -> None:
    assert [m.model_dump() for m in client.models.list()] == [m.model_dump() for m in direct.models.list()]


def test_a_binary_answer_is_passed_on(upstream: Upstream, compare: Comparison) -> None:
    upstream.reply = Reply((bytes(range(256)) * 400,), headers=(("content-type", "audio/mpeg"),))
    speech = compare(lambda client: client.audio.speech.create(model="tts", voice="alloy", input="Hi").content)
    assert speech.values == (bytes(range(256)) * 400,)


def test_a_file_goes_up_in_its_parts(upstream: Upstream, client: openai.OpenAI) -> None:
    content = bytes(range(256)) * 1000
    client.files.create(file=("a.jsonl", content), purpose="batch")
    sent = upstream.last
    assert content in sent.body
    assert (sent.header("content-type") or "").startswith("multipart/form-data; boundary=")
    assert (sent.method, sent.target) == ("POST", "/v1/files")


def test_other_paths_and_methods_are_passed_on(upstream: Upstream, compare: Comparison) -> None:
    upstream.reply = body_reply(b'{"id": "x", "object": "file", "deleted": true}')
    compare(lambda client: client.files.delete("file-1"))
    compare(lambda client: client.get("/fine_tuning/jobs?limit=2&after=a%2Fb", cast_to=object))
    compare(lambda client: client.patch("/odd/pa%2Fth", body={"é": [1.0]}, cast_to=object))


def test_headers_of_the_organization_arrive(upstream: Upstream, proxy) -> None:
    with sdk(proxy.base_url, organization="org-1", project="proj-1") as client:
        client.chat.completions.create(**CHAT)
    sent = dict(end_to_end(upstream.last))
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-1", "proj-1")
    assert sent["authorization"] == "Bearer sk-test"
