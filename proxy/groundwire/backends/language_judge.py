"""Ask language models and services as judges about open claims, and read their answers.

Each prompt follows its model's published format: the pages and templates of bespoke-minicheck and granite3-guardian in
Ollama's library, and the cookbooks of github.com/ibm-granite/granite-guardian. The probabilities of the tokens of an
answer are used where they are known.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, Protocol

from groundwire.backends.estimators import THINKING_TOKENS, TOP_LOGPROBS, query_service
from groundwire.backends.model_client import Body, ModelClient, Refused, groups
from groundwire.domain import Claim, Source, Unavailable
from groundwire.errors import ConfigError
from groundwire.features.probe import (
    CLAIM_HEADING,
    SYSTEM,
    Reply,
    Token,
    claim_fields,
    from_openai,
    lay_out,
    plain_token,
)
from groundwire.verifiers.entailment import Entailment, Opinion, Question, State

Kind = Literal["stated", "contradicted", "silent"]
Message = Mapping[str, str]
Words = Mapping[Kind, tuple[str, ...]]

_QUESTION = """What does the context above say of the claim? Answer with one of these and nothing else:
STATED: the context states the claim in whatever words, or it follows from what the context states.
CONTRADICTED: the context states something that cannot be true together with the claim.
NOT STATED: the context does neither, however likely the claim may be."""
_BREAKS_PROMPT = re.compile(r"\n\s*(?=(?:Document|Claim):)")


@dataclass(frozen=True, slots=True)
class PromptProfile:
    """The prompt for one kind of model, and the meaning of the words in its answers.

    `words` are in lower case; the prompt asks for the first of a kind. With `is_structured`, a model that
    thinks first is asked for its answer as JSON.
    """

    messages: Callable[[Question], list[Message]]
    words: Words
    max_tokens: int
    is_structured: bool = False


def _chat(question: Question) -> list[Message]:
    claim = claim_fields(question.claim, question.lead)
    user = lay_out(question.sources, CLAIM_HEADING, claim, _QUESTION)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def _minicheck(question: Question) -> list[Message]:
    document, claim = (_BREAKS_PROMPT.sub(" ", text) for text in (_document(question.sources), _statement(question)))
    return [{"role": "user", "content": f"Document: {document}\nClaim: {claim}"}]


def _guardian(role: str) -> Callable[[Question], list[Message]]:
    """Return the prompt of a Granite Guardian that takes the sources in a message with this role."""

    def messages(question: Question) -> list[Message]:
        return [
            {"role": "system", "content": "groundedness"},
            {"role": role, "content": _document(question.sources)},
            {"role": "assistant", "content": _statement(question)},
        ]

    return messages


def _statement(question: Question) -> str:
    """Return the claim after its lead, without which a pronoun in it has no subject."""
    return f"{question.lead} {question.claim}" if question.lead else question.claim


def _document(sources: Sequence[Source]) -> str:
    return "\n\n".join(f"{source.title}\n{source.text}" if source.title else source.text for source in sources)


_YES_IS_STATED: Words = {"stated": ("yes",), "silent": ("no",)}
_YES_IS_RISK: Words = {"stated": ("no",), "silent": ("yes",)}

PROMPT_PROFILES: Mapping[str, PromptProfile] = MappingProxyType(
    {
        "chat": PromptProfile(
            _chat,
            {
                "stated": ("stated", "supported", "yes", "true"),
                "contradicted": ("contradicted", "contradicts", "contradiction", "false"),
                "silent": ("not stated", "not supported", "not mentioned", "unsupported", "unstated", "no"),
            },
            8,
            is_structured=True,
        ),
        "bespoke-minicheck": PromptProfile(_minicheck, _YES_IS_STATED, 4),
        "granite-guardian": PromptProfile(_guardian("context"), _YES_IS_RISK, 4),
        "granite-guardian-3.3": PromptProfile(_guardian("documents"), _YES_IS_RISK, 24),
    }
)
"""Every way of asking a language model, by its name in `judge.profile`."""

_BY_NAME = (
    (re.compile(r"minicheck"), "bespoke-minicheck"),
    (
        re.compile(r"granite-?(?:3\.[3-9]|[4-9](?:\.\d+)?)-guardian|guardian-?(?:3\.[3-9]|[4-9])"),
        "granite-guardian-3.3",
    ),
    (re.compile(r"granite.*guardian"), "granite-guardian"),
)


def find_prompt_profile(model: str, named: str | None = None) -> PromptProfile:
    """Return how a model is asked: as `named`, else as its name suggests. Raises ConfigError for an unknown profile."""
    if named is None:
        named = next((profile for pattern, profile in _BY_NAME if pattern.search(model.lower())), "chat")
    if named not in PROMPT_PROFILES:
        near = difflib.get_close_matches(named, PROMPT_PROFILES, n=1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        raise ConfigError([f"judge.profile: {named} is no profile of a language model{hint}"])
    return PROMPT_PROFILES[named]


class LanguageJudge(Protocol):
    """Judges claims for one operation, within its limits. It raises nothing but cancellation."""

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order, or why there is none."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a chat completion that differ between servers and models."""

    limit: str = "max_tokens"
    has_logprobs: bool = False
    thinks: bool = False
    is_structured: bool = False


FORMS = (
    Form(has_logprobs=True),
    Form(),
    Form(has_logprobs=True, thinks=True),
    Form(thinks=True),
    Form("max_completion_tokens", thinks=True, is_structured=True),
    Form("max_completion_tokens", thinks=True),
)
"""In the order in which they are tried; which one a model takes is remembered."""

_PLAIN, _WEIGHED_THINKING, _THINKING, _COMPLETION = 1, 2, 3, 4

_TOP_OF_THOUGHT = 5  # alternatives per token of a long answer, which with TOP_LOGPROBS would take several MB


@dataclass(frozen=True, slots=True)
class ChatJudge:
    """A model behind OpenAI's dialect, asked about one claim at a time, so many at once as its limits allow.

    `forms` remembers, by the model's name, which form of the question its server takes.
    """

    client: ModelClient
    model: str
    profile: PromptProfile
    forms: MutableMapping[str, int]
    has_logprobs: bool = True

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """See `LanguageJudge`."""
        return await asyncio.gather(*(self._one(question) for question in questions))

    async def _one(self, question: Question) -> Opinion:
        messages = await asyncio.to_thread(self.profile.messages, question)
        at = self.forms.get(self.model, 0)
        if FORMS[at].has_logprobs and not self.has_logprobs:
            at += 1
        while at < len(FORMS):
            answer = await self.client.ask(self._body(messages, FORMS[at]))
            if isinstance(answer, Unavailable):
                return answer
            if isinstance(answer, Refused):
                at = _after_refusal(at, answer)
                continue
            self.forms[self.model] = max(at, self.forms.get(self.model, 0))
            reply = next(iter(from_openai(answer)), Reply(""))
            opinion = read_answer(reply, self.profile.words)
            if isinstance(opinion, Entailment) or FORMS[at].thinks or not _is_cut(answer, reply):
                return opinion
            at = _WEIGHED_THINKING if FORMS[at].has_logprobs else _THINKING
        return self.client.failed("it refuses the question in every form")

    def _body(self, messages: Sequence[Mapping[str, str]], form: Form) -> Mapping[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        body[form.limit] = THINKING_TOKENS if form.thinks else self.profile.max_tokens
        if form.limit == "max_tokens":
            body["temperature"] = 0.0  # which reasoning models refuse along with max_tokens
        if form.has_logprobs:
            body |= {"logprobs": True, "top_logprobs": _TOP_OF_THOUGHT if form.thinks else TOP_LOGPROBS}
        if form.is_structured and self.profile.is_structured:
            body["response_format"] = _response_format(self.profile)
        return body


def _after_refusal(at: int, refused: Refused) -> int:
    """Return the form to try after one that was refused; a complaint about max_tokens skips those that have it."""
    if at < _COMPLETION and "max_completion_tokens" in refused.message:
        return _COMPLETION
    return _COMPLETION if at == _PLAIN else at + 1


def _is_cut(answer: Body, reply: Reply) -> bool:
    """Return whether an answer ended before its verdict, as with a model that thinks first."""
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    return choice.get("finish_reason") == "length" or not reply.text.strip()


def _response_format(profile: PromptProfile) -> Mapping[str, Any]:
    answers = [known[0].upper() for known in profile.words.values()]
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": answers}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}


@dataclass(frozen=True, slots=True)
class ServiceJudge:
    """An HTTP service that judges; its contract is in docs/information-budget.md.

    Claims that are checked against the same sources go in one call, as many as its limits allow.
    """

    client: ModelClient

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """See `LanguageJudge`."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for at, question in enumerate(questions):
            alike.setdefault(tuple(map(id, question.sources)), []).append(at)
        size = self.client.limits.batch_size
        batches = [batch for places in alike.values() for batch in groups(places, size)]
        answers = await asyncio.gather(*(self._group([questions[at] for at in batch]) for batch in batches))
        found = {
            at: each
            for group, opinions in zip(batches, answers, strict=True)
            for at, each in zip(group, opinions, strict=True)
        }
        return [found[at] for at in range(len(questions))]

    async def _group(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        claims = [Claim("", each.claim, 0, len(each.claim), lead=each.lead) for each in questions]
        estimates = await query_service(self.client, claims, questions[0].sources)
        return [
            each
            if isinstance(each, Unavailable)
            else Entailment(each.value, min(each.contradiction or 0.0, 1.0 - each.value))
            for each in estimates
        ]


@dataclass(frozen=True, slots=True)
class BlockingModel:
    """A language judge for code that runs in a thread: `run` completes a coroutine elsewhere and returns its result."""

    judge: LanguageJudge
    run: Callable[[Coroutine[Any, Any, Sequence[Opinion]]], Sequence[Opinion]]
    state: State = field(default="ready")

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question; blocks until all are there, or their time is over."""
        return self.run(self.judge.judge(questions))


UNWEIGHED = 0.95
"""The probability of an answer where the server gives none: the share that chat models are right, roughly."""

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_OPENED, _CLOSED = re.compile("<think>", re.IGNORECASE), re.compile("</think>", re.IGNORECASE)
_TAG = re.compile(r"</?\w+>")
_MARKUP = " \t\r\n*_`\"'“”‘’.,:;!?()[]{}<>-"
_LEAST_SEEN = 0.5  # the mass on known answers, below which token probabilities mean nothing


def _unopened(text: str) -> int:
    """Return the end of thoughts at the beginning of a text that are closed but never opened, 0 if there are none."""
    opened = _OPENED.search(text)
    closed = _CLOSED.finditer(text, 0, opened.start() if opened else len(text))
    return max((each.end() for each in closed), default=0)


def read_answer(reply: Reply, words: Words) -> Opinion:
    """Return the opinion in an answer; unavailable where it gives none, or more than one."""
    text = _THOUGHT.sub("", reply.text[_unopened(reply.text) :])
    found = _structured(text, words) or _find(text, words)
    if found is None:
        return Unavailable("no_verdict")
    kind, word = found
    masses = _masses(reply.tokens, text, word, words) if reply.tokens else None
    if masses is None:
        rest = (1.0 - UNWEIGHED) / max(1, len(words) - 1)
        masses = {each: UNWEIGHED if each == kind else rest for each in words}
    total = sum(masses.values())
    return Entailment(masses.get("stated", 0.0) / total, masses.get("contradicted", 0.0) / total)


def _structured(text: str, words: Words) -> tuple[Kind, str] | None:
    """Return the verdict of an answer in JSON, under whatever key: its kind and its word."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        answer = json.loads(text[start : end + 1])
    except ValueError:
        return None
    values = [value for value in answer.values() if isinstance(value, str)] if isinstance(answer, dict) else []
    plain = [value.strip(_MARKUP).lower().replace("_", " ") for value in values]
    found = [(kind, value) for value in plain for kind, known in words.items() if value in known]
    return found[0] if len(found) == 1 else None


def _find(text: str, words: Words) -> tuple[Kind, str] | None:
    """Return the verdict that an answer begins with, else the only one that it holds: its kind and its word."""
    plain = _TAG.sub(lambda tag: " " * len(tag.group()), text).lower().replace("_", " ")
    names = {word: kind for kind, known in words.items() for word in known}
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in sorted(names, key=len, reverse=True)))
    found = list(pattern.finditer(plain))
    if not found:
        return None
    begins = not plain[: found[0].start()].strip(_MARKUP)
    is_only = len({names[each.group()] for each in found}) == 1
    return (names[found[0].group()], found[0].group()) if begins or is_only else None


def _masses(tokens: Sequence[Token], text: str, word: str, words: Words) -> dict[Kind, float] | None:
    """Return the probabilities of the answers at the token with which the verdict begins; None where they are lost.

    The tokens may include the thoughts before the answer's `text`.
    """
    joined = "".join(plain_token(token.text) for token in tokens).lower().replace("_", " ")
    thought = max((each.end() for each in _THOUGHT.finditer(joined)), default=_unopened(joined))
    place = joined.find(word, max(thought, joined.rfind(text.strip().lower().replace("_", " "))))
    if place < 0:
        return None
    ends = list(accumulate(len(plain_token(token.text)) for token in tokens))
    at = next((index for index, end in enumerate(ends) if end > place), None)
    if at is None or plain_token(tokens[at].text)[: place - (ends[at - 1] if at else 0)].strip(_MARKUP):
        return None
    masses = dict.fromkeys(words, 0.0)
    for text, probability in ((tokens[at].text, tokens[at].probability), *tokens[at].others):
        kind = _kind(text, words)
        if kind is not None:
            masses[kind] += probability
    return masses if sum(masses.values()) >= _LEAST_SEEN else None


def _kind(token: str, words: Words) -> Kind | None:
    """Return the only kind whose words a token can begin."""
    plain = plain_token(token).strip(_MARKUP).lower()
    if not plain:
        return None
    kinds = {
        kind for kind, known in words.items() for word in known if word.startswith(plain) or plain.startswith(word)
    }
    first = {kind for kind, known in words.items() if known[0].startswith(plain)}
    return kinds.pop() if len(kinds) == 1 else first.pop() if len(first) == 1 else None
