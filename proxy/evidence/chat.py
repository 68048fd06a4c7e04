"""Chat models as estimators: what a model believes, from its token probabilities, else from repeated answers (IB2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.evidence.asking import Asking, Body, Refused
from proxy.evidence.estimator import groups
from proxy.types import Claim, Estimate, Source, Unavailable
from proxy.verification.information.budget import TARGETS, is_settled
from proxy.verification.information.probability import unanimous_samples
from proxy.verification.information.probe import Probe, ask, ask_all
from proxy.verification.information.reply import Reply, from_openai, read, read_all, sampled, says, says_all

_TOP = 20  # the most that OpenAI's API, Ollama and vLLM tell of one token
_ROUND = 5  # answers asked for at once, after a first one that may show that none are to be had
_UNREADABLE = ("no_verdict", "misaligned", "no_samples")  # of a group; alone the claim may be answered plainly

SAMPLES = unanimous_samples(TARGETS["samples"])
"""Answers asked for where a server tells no probabilities: as many as decide when all are alike."""

_Said = tuple[bool | None, ...]


class ChatEstimator:
    """A model behind OpenAI's dialect, asked as `probe` lays it out; see `Estimator`.

    Claims on one context go in one call per group. One whose line in the answer is missing, garbled or near a threshold
    is asked about once more, alone. `tells_logprobs` False: the model is sampled from the start.
    """

    def __init__(self, asking: Asking, model: str, *, tells_logprobs: bool = True) -> None:
        self._asking = asking
        self._model = model
        self._tells_logprobs = tells_logprobs

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """The probability of YES to one claim."""
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
        """The probabilities of several claims on one context, a group in each call, all groups at once."""
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
        """The likeliest answer with its probabilities; None when the server refuses to tell them."""
        answer = await self._asking.ask(_question(self._model, probe, 0.0, logprobs=True, top_logprobs=_TOP))
        return None if isinstance(answer, Refused) else _reply(answer)

    async def _sampled(self, probe: Probe) -> Sequence[Estimate]:
        """The probabilities from repeated answers. It ends early where no claim can reach its target any more."""
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
        answer = await self._asking.ask(_question(self._model, probe, 1.0))
        return self._asking.failed(f"status {answer.status}") if isinstance(answer, Refused) else _reply(answer)


def _question(model: str, probe: Probe, temperature: float, **fields: Any) -> Mapping[str, Any]:
    messages = [{"role": "system", "content": probe.system}, {"role": "user", "content": probe.user}]
    common = {"model": model, "messages": messages, "max_tokens": probe.max_tokens, "temperature": temperature}
    return {**common, **fields}


def _reply(answer: Body | Unavailable) -> Reply | Unavailable:
    """The first choice of a chat completion; one without choices reads as an empty answer."""
    if isinstance(answer, Unavailable):
        return answer
    return next(iter(from_openai(answer)), Reply(""))


def _is_untold(estimate: Estimate) -> bool:
    return isinstance(estimate, Unavailable) and estimate.cause in ("no_logprobs", "misaligned")


def _has_no_logprobs(estimate: Estimate) -> bool:
    return isinstance(estimate, Unavailable) and estimate.cause == "no_logprobs"


def _is_doubtful(estimate: Estimate) -> bool:
    """Whether a claim of a group is to be asked about alone."""
    if isinstance(estimate, Unavailable):
        return estimate.cause in _UNREADABLE
    return estimate.method == "logprobs" and not is_settled(estimate, TARGETS["logprobs"])


def _is_open(answers: Sequence[_Said]) -> bool:
    """Whether any claim has had answers of one mind only, so that more of them may decide it."""
    return not answers or any(not {True, False} <= set(column) for column in zip(*answers, strict=True))
