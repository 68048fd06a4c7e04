"""Classify the intent of a question into a few broad kinds."""

from __future__ import annotations

import re

from groundwire.domain import Intent

_MAX_LENGTH = 2000

_KINDS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "why",
        re.compile(
            r"\b(?:why|how come|what (?:\w+ )?(?:caused|causes|led to|explains)|for what reasons?|what (?:is|are|was|"
            r"were) the (?:\w+ )?(?:reasons?|causes?|motives?|rationale)|give (?:me )?(?:a |the )?reasons?)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "compare",
        re.compile(
            r"\b(?:compar(?:e|es|ed|ing|ison)|versus|vs\.?|differences?|differs?|contrast|better than|worse than|"
            r"pros and cons)\b|\bwhich (?:\w+ ){0,4}?(?:is|are|was|has|have|costs?|lasts?) (?:the )?(?:more|less|"
            r"better|worse|best|worst|most|least|\w{2,}(?:er|est))\b(?=.*(?:\bor\b|\bthan\b|\bof the (?:two|three)\b|"
            r"\bbetween\b))|\b(?:more|less|fewer|\w{3,}er) (?:\w+ ){0,4}?than\b",
            re.IGNORECASE,
        ),
    ),
    (
        "count",
        re.compile(
            r"\b(?:how many|how often|(?:what(?:'s| is| was| are)|tell me|give me) the (?:total )?(?:number|count) of|"
            r"count (?:the|all|how|of|up)|number of .{1,60}\?)|^\W*count\b",
            re.IGNORECASE,
        ),
    ),
    (
        "list",
        re.compile(
            r"\b(?:(?:list|enumerate|itemi[sz]e|name) (?:all|the|every|each|some|three|four|five|ten|\d+|me|any|up|"
            r"out)|list of|what are (?:all|the (?:\w+ )?(?:\w+s)\b)|what (?:kinds|types|sorts) of|"
            r"which (?:\w+ ){0,2}?\w+s (?:are|were|do|did|have|can|does|is|must|may|should)|"
            r"give me (?:all|the names|examples|every)|show (?:me )?all|"
            r"what (?:\w+ )?(?:options|features|steps|items|documents|plans|countries|products) )\b"
            r"|^\W*list\b",
            re.IGNORECASE,
        ),
    ),
    (
        "lookup",
        re.compile(
            r"\b(?:who|whom|whose|when|where|which|what|what's|how (?:much|long|far|old|big|tall|high|fast|late|early|"
            r"large|soon)|how (?:is|are|was|were|do|does|did|can|to))\b|^\W*(?:is|are|was|were|do|does|did|can|could|"
            r"has|have|had|will|would|should|may|must)\b|\b(?:find|look up|tell me|let me know|show me|give me)\b",
            re.IGNORECASE,
        ),
    ),
)
_TASK = re.compile(
    r"^\W*(?:please |kindly |now |could you |can you |would you )*(?:write|summari[sz]e|translate|draft|rewrite|"
    r"rephrase|paraphrase|generate|create|compose|convert|extract|classify|correct|proofread|continue|edit|improve|shorten|"
    r"hello|hi|hey|thanks|thank you|good (?:morning|evening|afternoon))\b",
    re.IGNORECASE,
)


def intent_of(question: str) -> Intent:
    """Return the intent of a question: a lookup, a comparison, a count, a list, a reason, or other.

    A task such as "Summarise the report" is other, as is a text that asks nothing. Only the end of a long text is read.
    """
    text = " ".join(question[-_MAX_LENGTH:].split())
    if _TASK.match(text):
        return "other"
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "other")
