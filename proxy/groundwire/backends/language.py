"""Language models and services as judges: asked about each open claim, with all that they need to decide it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from groundwire.backends import service
from groundwire.backends.asking import Asking, Body, Refused
from groundwire.backends.chat import THINKING_TOKENS
from groundwire.backends.judge_answers import read_answer
from groundwire.backends.judge_prompts import PromptProfile
from groundwire.domain import Claim, Probability, Unavailable
from groundwire.features.information_budget.logprobs import Reply, from_openai
from groundwire.verifiers.entailment import Entailment, Opinion, Question, State

T = TypeVar("T")

_TOP = 20  # the most that OpenAI's API, Ollama and vLLM give of one token


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
    Form(thinks=True),
    Form("max_completion_tokens", thinks=True, is_structured=True),
    Form("max_completion_tokens", thinks=True),
)
"""In the order in which they are tried; which one a model takes is remembered."""

_PLAIN, _THINKING, _COMPLETION = 1, 2, 3


class ChatJudge:
    """A model behind OpenAI's dialect, asked about one claim at a time, so many at once as its limits allow.

    `forms` remembers, by the model's name, which form of the question its server takes.
    """

    def __init__(
        self,
        asking: Asking,
        model: str,
        profile: PromptProfile,
        forms: MutableMapping[str, int],
        *,
        tells_logprobs: bool = True,
    ) -> None:
        self._asking = asking
        self._model = model
        self._profile = profile
        self._forms = forms
        self._first = 0 if tells_logprobs else _PLAIN

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """See `LanguageJudge`."""
        return await asyncio.gather(*(self._one(question) for question in questions))

    async def _one(self, question: Question) -> Opinion:
        messages = await asyncio.to_thread(self._profile.messages, question)
        at = max(self._first, self._forms.get(self._model, 0))
        while at < len(FORMS):
            answer = await self._asking.ask(self._body(messages, FORMS[at]))
            if isinstance(answer, Unavailable):
                return answer
            if isinstance(answer, Refused):
                at = _after_refusal(at, answer)
                continue
            self._forms[self._model] = max(at, self._forms.get(self._model, 0))
            reply = next(iter(from_openai(answer)), Reply(""))
            opinion = read_answer(reply, self._profile.words)
            if isinstance(opinion, Entailment) or FORMS[at].thinks or not _is_cut(answer, reply):
                return opinion
            at = _THINKING
        return self._asking.failed("it refuses the question in every form")

    def _body(self, messages: Sequence[Mapping[str, str]], form: Form) -> Mapping[str, Any]:
        body: dict[str, Any] = {"model": self._model, "messages": list(messages)}
        body[form.limit] = THINKING_TOKENS if form.thinks else self._profile.max_tokens
        if form.limit == "max_tokens":
            body["temperature"] = 0.0  # which reasoning models refuse along with max_tokens
        if form.has_logprobs:
            body |= {"logprobs": True, "top_logprobs": _TOP}
        if form.is_structured and self._profile.is_structured:
            body["response_format"] = _response_format(self._profile)
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


class ServiceJudge:
    """An HTTP service that judges; its contract is in docs/information-budget.md.

    Claims that are checked against the same sources go in one call, as many as its limits allow.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """See `LanguageJudge`."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for at, question in enumerate(questions):
            alike.setdefault(tuple(map(id, question.sources)), []).append(at)
        size = self._asking.limits.batch_size
        groups = [places[at : at + size] for places in alike.values() for at in range(0, len(places), size)]
        answers = await asyncio.gather(*(self._group([questions[at] for at in group]) for group in groups))
        found = {
            at: each
            for group, opinions in zip(groups, answers, strict=True)
            for at, each in zip(group, opinions, strict=True)
        }
        return [found[at] for at in range(len(questions))]

    async def _group(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        claims = [Claim("", each.claim, 0, len(each.claim), lead=each.lead) for each in questions]
        answer = await self._asking.ask(await asyncio.to_thread(service.question, claims, questions[0].sources))
        if isinstance(answer, Unavailable):
            return [answer] * len(claims)
        if isinstance(answer, Refused):
            return [self._asking.failed(f"status {answer.status}")] * len(claims)
        return [_opinion(each) for each in service.read(answer, len(claims))]


def _opinion(estimate: Probability | Unavailable) -> Opinion:
    if isinstance(estimate, Unavailable):
        return estimate
    return Entailment(estimate.value, min(estimate.contradiction or 0.0, 1.0 - estimate.value))


@dataclass(frozen=True, slots=True)
class BlockingModel:
    """A language judge for code that runs in a thread: `run` completes a coroutine elsewhere and returns its result.

    `open` begins one operation, whose time starts then.
    """

    open: Callable[[], LanguageJudge]
    run: Callable[[Coroutine[Any, Any, Sequence[Opinion]]], Sequence[Opinion]]
    state: State = field(default="ready")

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question; blocks until all are there, or their time is over."""
        return self.run(self._judge(questions))

    async def _judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        return await self.open().judge(questions)
