"""Estimate the probabilities of claims with chat models, with an HTTP service, or with the embedded verifier.

Chat models are read by token probabilities or else by repeated answers; docs/information-budget.md describes the
contract of a service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundwire.backends.model_client import Body, ModelClient, Refused, groups
from groundwire.dialects.dialect import Answer
from groundwire.dialects.openai import CHAT
from groundwire.domain import Claim, Estimate, Probability, Source, Unavailable
from groundwire.errors import Overload
from groundwire.evidence.index import Context
from groundwire.features.information_budget import believed
from groundwire.features.probe import (
    Probe,
    Reply,
    ask,
    ask_all,
    from_openai,
    parse_verdict,
    parse_verdicts,
    read,
    read_all,
    sampled,
    unanimous_samples,
)
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.scoring.budget import TARGETS, is_settled

TOP_LOGPROBS = 20
"""The most alternatives that the API of OpenAI, Ollama and vLLM return for one token."""

THINKING_TOKENS = 2048
"""The budget of a model that thinks before it answers."""

_THINKING = {"max_completion_tokens": THINKING_TOKENS}  # for a model that takes neither max_tokens nor a temperature

_ROUND = 5  # answers requested at once, after a first one that may show that sampling is impossible
_UNREADABLE = ("no_verdict", "misaligned", "no_samples")  # in a group; asked alone it may be readable

SAMPLES = unanimous_samples(TARGETS["samples"])
"""The number of answers requested from servers without token probabilities: enough to decide when all agree."""

_Verdicts = tuple[bool | None, ...]


@dataclass(slots=True)
class ChatEstimator:
    """A model behind OpenAI's dialect, queried with prompts of `probe`; see `Estimator`.

    Claims on one context share a call per group. A claim whose line in the answer is missing, garbled or near a
    threshold is asked about again, alone. Without `has_logprobs` the model is sampled from the start.
    """

    client: ModelClient
    model: str
    has_logprobs: bool = True
    _thinks: bool = field(default=False, init=False)

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability of YES to one claim."""
        probe = await asyncio.to_thread(ask, claim, context)
        if self.has_logprobs:
            reply = await self._most_likely_reply(probe)
            if isinstance(reply, Unavailable):
                return reply
            found = read(reply) if reply else Unavailable("no_logprobs")
            if not _is_unavailable(found, "no_logprobs", "misaligned"):
                return found
        (estimate,) = await self._sampled(probe)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities of several claims on one context, one call for each group, all groups
        concurrently.
        """
        batches = groups(claims, self.client.limits.batch_size)
        found = await asyncio.gather(*(self._group(group, context) for group in batches))
        return [estimate for group in found for estimate in group]

    async def _group(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        if len(claims) == 1:
            return [await self.estimate_probability(claims[0], context)]
        found = await self._together(await asyncio.to_thread(ask_all, claims, context))
        places = [place for place, estimate in enumerate(found) if _is_doubtful(estimate)]
        alone = await asyncio.gather(*(self.estimate_probability(claims[place], context) for place in places))
        again = dict(zip(places, alone, strict=True))
        return [again.get(place, estimate) for place, estimate in enumerate(found)]

    async def _together(self, probe: Probe) -> Sequence[Estimate]:
        if not self.has_logprobs:
            return await self._sampled(probe)
        reply = await self._most_likely_reply(probe)
        if isinstance(reply, Unavailable):
            return [reply] * probe.count
        found = read_all(reply, probe.count) if reply else [Unavailable("no_logprobs")] * probe.count
        return await self._sampled(probe) if any(_is_unavailable(each, "no_logprobs") for each in found) else found

    async def _most_likely_reply(self, probe: Probe) -> Reply | Unavailable | None:
        """Return the most likely answer with its probabilities; None when the server refuses to provide them."""
        if self._thinks:
            return None
        fields = {"max_tokens": probe.max_tokens, "temperature": 0.0, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        answer = await self._ask(probe, fields)
        if isinstance(answer, Refused):
            self._thinks = _wants_budget(answer)
            return None
        return _reply(answer)

    async def _sampled(self, probe: Probe) -> Sequence[Estimate]:
        """Return the probabilities from repeated answers. Stops early when no claim can reach its target any more."""
        answers: list[_Verdicts] = []
        while len(answers) < SAMPLES and _is_open(answers):
            count = min(SAMPLES - len(answers), _ROUND) if answers else 1
            replies = await asyncio.gather(*(self._sample(probe) for _ in range(count)))
            for reply in replies:
                if isinstance(reply, Unavailable):
                    return [reply] * probe.count
                answers.append(parse_verdicts(reply, probe.count) if probe.count > 1 else (parse_verdict(reply),))
        return [sampled(column) for column in zip(*answers, strict=True)]

    async def _sample(self, probe: Probe) -> Reply | Unavailable:
        if self._thinks:
            answer = await self._ask(probe, _THINKING)
        else:
            answer = await self._ask(probe, {"max_tokens": probe.max_tokens, "temperature": 1.0})
            if isinstance(answer, Refused) and _wants_budget(answer):
                self._thinks = True
                answer = await self._ask(probe, _THINKING)
        return self.client.failed(f"status {answer.status}") if isinstance(answer, Refused) else _reply(answer)

    async def _ask(self, probe: Probe, fields: Mapping[str, Any]) -> Body | Refused | Unavailable:
        messages = [{"role": "system", "content": probe.system}, {"role": "user", "content": probe.user}]
        return await self.client.ask({"model": self.model, "messages": messages, **fields})


def _wants_budget(refused: Refused) -> bool:
    return "max_completion_tokens" in refused.message


def _reply(answer: Body | Unavailable) -> Reply | Unavailable:
    """Return the first choice of a chat completion; one without choices reads as an empty answer."""
    if isinstance(answer, Unavailable):
        return answer
    return next(iter(from_openai(answer)), Reply(""))


def _is_unavailable(estimate: Estimate, *causes: str) -> bool:
    return isinstance(estimate, Unavailable) and estimate.cause in causes


def _is_doubtful(estimate: Estimate) -> bool:
    """Return whether to ask about a claim of a group again, alone."""
    if isinstance(estimate, Unavailable):
        return estimate.cause in _UNREADABLE
    return estimate.method == "logprobs" and not is_settled(estimate, TARGETS["logprobs"])


def _is_open(answers: Sequence[_Verdicts]) -> bool:
    """Return whether the answers on any claim are still unanimous, so that more of them may decide it."""
    return not answers or any(not {True, False} <= set(column) for column in zip(*answers, strict=True))


Run = Callable[[Callable[[], Sequence[Estimate]]], Awaitable[Sequence[Estimate]]]
"""Run a CPU-bound job off the event loop; raises Overload when there is no capacity."""


@dataclass(frozen=True, slots=True)
class EmbeddedEstimator:
    """An `Estimator` that runs in this process. `until` is the deadline on the clock of the event loop."""

    run: Run
    policy: Policy
    until: float
    judge: Judge = Judge()

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability that the sources support one claim."""
        (estimate,) = await self.batch_estimate([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities that the sources support several claims."""
        try:
            async with asyncio.timeout_at(self.until):
                return await self.run(lambda: self._probabilities(claims, context))
        except TimeoutError:
            return [Unavailable("timeout")] * len(claims)
        except Overload:
            return [Unavailable("overload")] * len(claims)

    def _probabilities(self, claims: Sequence[Claim], sources: Sequence[Source]) -> list[Estimate]:
        context = Context(sources)
        return [believed(self.judge.one(claim, context, self.policy)) for claim in claims]


VERSION = 1


@dataclass(frozen=True, slots=True)
class ServiceEstimator:
    """Query a service that returns probabilities; see `Estimator`."""

    client: ModelClient

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the service's probability of one claim."""
        (estimate,) = await query_service(self.client, [claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the service's probabilities of several claims on one context, all groups concurrently."""
        batches = groups(claims, self.client.limits.batch_size)
        found = await asyncio.gather(*(query_service(self.client, group, context) for group in batches))
        return [estimate for group in found for estimate in group]


async def query_service(client: ModelClient, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
    """Return a service's probabilities of a group of claims, by one call."""
    answer = await client.ask(await asyncio.to_thread(_service_question, claims, context))
    if isinstance(answer, Unavailable):
        return [answer] * len(claims)
    if isinstance(answer, Refused):
        return [client.failed(f"status {answer.status}")] * len(claims)
    listed = answer.get("estimates")
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    ids = map(str, range(1, len(claims) + 1))
    return [_estimate([each for each in entries if each.get("id") == id_]) for id_ in ids]


def _service_question(claims: Sequence[Claim], context: Sequence[Source]) -> Mapping[str, Any]:
    """Return the question to the service: the sources, and the claims with ids counted from "1"."""
    sources = [
        {"id": source.id, **({"title": source.title} if source.title else {}), "text": source.text}
        for source in context
    ]
    numbered = [
        {"id": str(number), "claim": claim.text, **({"said_before": claim.lead} if claim.lead else {})}
        for number, claim in enumerate(claims, start=1)
    ]
    return {"version": VERSION, "context": sources, "claims": numbered}


def _estimate(entries: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the probability of a claim; unavailable if its entry is missing, repeated or invalid."""
    if len(entries) != 1:
        return Unavailable("no_verdict" if not entries else "misaligned")
    value, contradiction = entries[0].get("probability"), entries[0].get("contradiction")
    bounds = (entries[0].get("lower", value), value, entries[0].get("upper", value))
    contradicted = 0.0 if contradiction is None else contradiction
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in (*bounds, contradicted)):
        return Unavailable("no_verdict")
    lower, value, upper = map(float, bounds)
    if not (0.0 <= lower <= value <= upper <= 1.0 and 0.0 <= contradicted <= 1.0):
        return Unavailable("no_verdict")
    return Probability(
        value, lower, upper, "service", contradiction=None if contradiction is None else float(contradiction)
    )


_MAX_TOKENS = 200


@dataclass(frozen=True, slots=True)
class ChatExecutor:
    """A model behind OpenAI's dialect."""

    client: ModelClient
    model: str

    async def complete(self, system: str, user: str) -> str | Unavailable:
        """Return the reply to a prompt, at temperature 0; raises nothing but cancellation."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        question = {"model": self.model, "messages": messages, "temperature": 0.0, "max_tokens": _MAX_TOKENS}
        answer = await self.client.ask(question)
        if isinstance(answer, Refused):
            return Unavailable("error")
        if isinstance(answer, Unavailable):
            return answer
        return next((choice.text for choice in Answer.whole(CHAT, answer).choices()), "")
