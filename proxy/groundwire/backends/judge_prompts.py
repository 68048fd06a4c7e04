"""Prompts that ask language models whether sources state a claim, and the meaning of their answers.

Each profile follows its model's published format: the pages and templates of bespoke-minicheck and granite3-guardian in
Ollama's library, and the cookbooks of github.com/ibm-granite/granite-guardian.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from groundwire.domain import Source
from groundwire.errors import ConfigError
from groundwire.features.probe import CLAIM_HEADING, CONTEXT_HEADING, SYSTEM, quote, quote_sources
from groundwire.verifiers.entailment import Question

Kind = Literal["stated", "contradicted", "silent"]
Message = Mapping[str, str]

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
    words: Mapping[Kind, tuple[str, ...]]
    max_tokens: int
    is_structured: bool = False


def _chat(question: Question) -> list[Message]:
    claim = {"claim": question.claim}
    if question.lead:
        claim = {"said_before": question.lead, **claim}
    lines = (CONTEXT_HEADING, quote_sources(question.sources), "", CLAIM_HEADING, quote(claim), "", _QUESTION)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "\n".join(lines)}]


def _minicheck(question: Question) -> list[Message]:
    document, claim = (_BREAKS_PROMPT.sub(" ", text) for text in (_document(question.sources), question.claim))
    return [{"role": "user", "content": f"Document: {document}\nClaim: {claim}"}]


def _guardian(role: str) -> Callable[[Question], list[Message]]:
    """Return the prompt of a Granite Guardian that takes the sources in a message with this role."""

    def messages(question: Question) -> list[Message]:
        return [
            {"role": "system", "content": "groundedness"},
            {"role": role, "content": _document(question.sources)},
            {"role": "assistant", "content": question.claim},
        ]

    return messages


def _document(sources: Sequence[Source]) -> str:
    return "\n\n".join(f"{source.title}\n{source.text}" if source.title else source.text for source in sources)


_YES_IS_STATED: Mapping[Kind, tuple[str, ...]] = {"stated": ("yes",), "silent": ("no",)}
_YES_IS_RISK: Mapping[Kind, tuple[str, ...]] = {"stated": ("no",), "silent": ("yes",)}

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
