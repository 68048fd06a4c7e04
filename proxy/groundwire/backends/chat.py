"""Estimate probabilities with chat models, from token probabilities or else from repeated answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from groundwire.backends.asking import Asking, Body, Refused
from groundwire.backends.estimator import groups
from groundwire.domain import Claim, Estimate, Source, Unavailable
from groundwire.features.information_budget.logprobs import Reply, from_openai, read, read_all, sampled, says, says_all
from groundwire.features.information_budget.probability import unanimous_samples
from groundwire.features.information_budget.probe import Probe, ask, ask_all
from groundwire.scoring.budget import TARGETS, is_settled

_TOP = 20  # the most that OpenAI's API, Ollama and vLLM return for one token
THINKING_TOKENS = 2048
"""The budget of a model that thinks before it answers."""

_ROUND = 5  # answers requested at once, after a first one that may show that sampling is impossible
_UNREADABLE = ("no_verdict", "misaligned", "no_samples")  # in a group; asked alone it may be readable

SAMPLES = unanimous_samples(TARGETS["samples"])
"""The number of answers requested from servers without token probabilities: enough to decide when all agree."""

_Said = tuple[bool | None, ...]


class ChatEstimator:
    """A model behind OpenAI's dialect, queried with prompts of `probe`; see `Estimator`.

    Claims on one context share a call per group. A claim whose line in the answer is missing, garbled or near a
    threshold is asked about again, alone. With `tells_logprobs` False the model is sampled from the start.
    """

    def __init__(self, asking: Asking, model: str, *, tells_logprobs: bool = True) -> None:
        self._asking = asking
        self._model = model
        self._tells_logprobs = tells_logprobs
        self._thinks = False

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability of YES to one claim."""
        probe = await asyncio.to_thread(ask, claim, context)
        if self._tells_logprobs:
            reply = await self._told(probe)
            if isinstance(reply, Unavailable):
                return reply
            found = read(reply) if reply else Unavailable("no_logprobs")
            if not _is_untold(found):
                return found
        (estimate,) = await self._sampled(probe)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities of several claims on one context, one call for each group, all groups
        concurrently.
        """
        found = await asyncio.gather(*(self._group(group, context) for group in self._groups(claims)))
        return [estimate for group in found for estimate in group]

    def _groups(self, claims: Sequence[Claim]) -> list[Sequence[Claim]]:
        return groups(claims, self._asking.limits.batch_size)

    async def _group(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        if len(claims) == 1:
            return [await self.estimate_probability(claims[0], context)]
        found = await self._together(await asyncio.to_thread(ask_all, claims, context))
        places = [place for place, estimate in enumerate(found) if _is_doubtful(estimate)]
        alone = await asyncio.gather(*(self.estimate_probability(claims[place], context) for place in places))
        again = dict(zip(places, alone, strict=True))
        return [again.get(place, estimate) for place, estimate in enumerate(found)]

    async def _together(self, probe: Probe) -> Sequence[Estimate]:
        if not self._tells_logprobs:
            return await self._sampled(probe)
        reply = await self._told(probe)
        if isinstance(reply, Unavailable):
            return [reply] * probe.count
        found = read_all(reply, probe.count) if reply else [Unavailable("no_logprobs")] * probe.count
        return await self._sampled(probe) if any(map(_has_no_logprobs, found)) else found

    async def _told(self, probe: Probe) -> Reply | Unavailable | None:
        """Return the most likely answer with its probabilities; None when the server refuses to provide them."""
        if self._thinks:
            return None
        answer = await self._asking.ask(_question(self._model, probe, 0.0, logprobs=True, top_logprobs=_TOP))
        if isinstance(answer, Refused):
            self._thinks = _wants_budget(answer)
            return None
        return _reply(answer)

    async def _sampled(self, probe: Probe) -> Sequence[Estimate]:
        """Return the probabilities from repeated answers. Stops early when no claim can reach its target any more."""
        answers: list[_Said] = []
        while len(answers) < SAMPLES and _is_open(answers):
            count = min(SAMPLES - len(answers), _ROUND) if answers else 1
            replies = await asyncio.gather(*(self._sample(probe) for _ in range(count)))
            for reply in replies:
                if isinstance(reply, Unavailable):
                    return [reply] * probe.count
                answers.append(says_all(reply, probe.count) if probe.count > 1 else (says(reply),))
        return [sampled(column) for column in zip(*answers, strict=True)]

    async def _sample(self, probe: Probe) -> Reply | Unavailable:
        question = _thinking_question if self._thinks else _sampling_question
        answer = await self._asking.ask(question(self._model, probe))
        if not self._thinks and isinstance(answer, Refused) and _wants_budget(answer):
            self._thinks = True
            answer = await self._asking.ask(_thinking_question(self._model, probe))
        return self._asking.failed(f"status {answer.status}") if isinstance(answer, Refused) else _reply(answer)


def _question(model: str, probe: Probe, temperature: float, **fields: Any) -> Mapping[str, Any]:
    messages = [{"role": "system", "content": probe.system}, {"role": "user", "content": probe.user}]
    common = {"model": model, "messages": messages, "max_tokens": probe.max_tokens, "temperature": temperature}
    return {**common, **fields}


def _sampling_question(model: str, probe: Probe) -> Mapping[str, Any]:
    return _question(model, probe, 1.0)


def _thinking_question(model: str, probe: Probe) -> Mapping[str, Any]:
    """Return the question to a reasoning model, which takes neither `max_tokens` nor a temperature."""
    asked = {key: value for key, value in _question(model, probe, 1.0).items() if key in ("model", "messages")}
    return {**asked, "max_completion_tokens": THINKING_TOKENS}


def _wants_budget(refused: Refused) -> bool:
    return "max_completion_tokens" in refused.message


def _reply(answer: Body | Unavailable) -> Reply | Unavailable:
    """Return the first choice of a chat completion; one without choices reads as an empty answer."""
    if isinstance(answer, Unavailable):
        return answer
    return next(iter(from_openai(answer)), Reply(""))


def _is_untold(estimate: Estimate) -> bool:
    return isinstance(estimate, Unavailable) and estimate.cause in ("no_logprobs", "misaligned")


def _has_no_logprobs(estimate: Estimate) -> bool:
    return isinstance(estimate, Unavailable) and estimate.cause == "no_logprobs"


def _is_doubtful(estimate: Estimate) -> bool:
    """Return whether to ask about a claim of a group again, alone."""
    if isinstance(estimate, Unavailable):
        return estimate.cause in _UNREADABLE
    return estimate.method == "logprobs" and not is_settled(estimate, TARGETS["logprobs"])


def _is_open(answers: Sequence[_Said]) -> bool:
    """Return whether the answers on any claim are still unanimous, so that more of them may decide it."""
    return not answers or any(not {True, False} <= set(column) for column in zip(*answers, strict=True))
