"""Recognise statements that the context has no answer: "The passages do not mention the price"."""

from __future__ import annotations

import re

_CONTEXT = (
    r"(?:(?:^|\b(?:the|this|these|those|any|no|each|both|either|neither|your|my|in|from|by|given|provided|supplied"
    r"|retrieved|available|above|other) )"
    r"(?:passages?|contexts?|documents?|texts?|sources?|articles?|excerpts?|snippets?|transcripts?|search results?)"
    r"\b(?! of)"
    r"|\b(?:provided|given|available|supplied|above) (?:\w+ ){0,2}"
    r"(?:information|data|reports?|materials?|content|details|tables?|pages?)"
    r"|\b(?:information|data|content|details|materials?)(?: \w+)? (?:provided|given|available|above|supplied))"
)
_TELL = (
    r"(?:mention|contain|provide|specify|say|state|include|discuss|address|give|indicate|list|describe|explain|answer"
    r"|offer|cover|clarify|elaborate|refer|tell|detail|reveal|disclose|define)"
)
_TOLD = (
    r"(?:mentioned|specified|stated|provided|discussed|included|addressed|given|listed|described|clear|found|covered"
    r"|explained|available|present|indicated|disclosed|detailed)"
)
_NOT = r"(?:not|isn't|aren't|wasn't|weren't|nor|never)"
_DO_NOT = r"(?:(?:do|does|did|has|have) not|don't|doesn't|didn't|hasn't|haven't|cannot|can't|never|lacks?)"
_CANNOT = r"(?:unable|impossible|not possible|not able|cannot|can't|could not|couldn't)"
_ENDS = r"(?= (?:in|by|within|here|from|based|with|given|using|solely|without)\b| [.,;)]|$)"

_SILENT = re.compile(
    "|".join(
        (
            rf"{_CONTEXT}(?: \w+){{0,4}} {_DO_NOT}(?: \w+){{0,2}} (?:{_TELL}|information|details?)\b",
            rf"{_CONTEXT}(?: \w+){{0,2}} (?:provides?|contains?|gives?|includes?|offers?|makes?|has|have) no ",
            rf"\b(?:no|none of the) (?:passage|context|document|text|source|article)s? (?:\w+ly )?{_TELL}",
            rf"\b{_NOT}(?: \w+){{0,2}} {_TOLD}(?: \w+){{0,2}} (?:in|by|from|within|on)(?: \w+){{0,2}} {_CONTEXT}",
            rf"\b{_NOT}(?: \w+){{0,2}} {_TOLD} (?:in|by|from|within|on) {_CONTEXT}",
            rf"\b{_NOT} (?:\w+ly )?(?:mentioned|specified|stated|indicated)(?: here)? ?(?:[.,;]|$)",
            rf"\b(?:no|none|nothing)(?: \w+){{0,6}} (?:mentioned|specified|stated|indicated){_ENDS}",
            rf"\b(?:no|none|nothing)(?: \w+){{0,6}} {_TOLD}(?: \w+){{0,3}} {_CONTEXT}",
            r"\bno (?:(?:specific|explicit|direct|further|other|clear|detailed) )?(?:mention|information)\b",
            rf"\bno (?:\w+ ){{0,3}}(?:evidence|details?|reference|data|indication|answer|support)\b"
            rf"(?: \w+){{0,8}} {_CONTEXT}",
            r"\b(?:i|we) (?:can't|cannot|couldn't|could not|did not|didn't|don't|do not|was unable to|am unable to)"
            r"(?: \w+)? (?:find|see|determine|locate|confirm|verify|identify|tell|have enough|have sufficient)\b",
            rf"\b{_CANNOT}(?: \w+){{0,3}} (?:answer(?:ed)?|determined?|find|infer(?:red)?|provide|say|tell"
            rf"|confirm(?:ed)?|verif(?:y|ied)|concluded?)\b(?: \w+){{0,8}} {_CONTEXT}",
            rf"\b(?:cannot|can't|could not) be (?:determined|answered|inferred|verified|confirmed|concluded){_ENDS}",
            rf"^(?:it is|it's|this is|is) (?:unclear|not clear|unknown|not known)(?: \w+){{0,10}} {_CONTEXT}",
            r"^(?:unable|impossible|not possible|not able) to (?:answer|determine|find|provide)\b",
            rf"^(?:doesn't|does not) (?:\w+ly |even )?{_TELL}\b",
            r"\b(?:not enough|insufficient|no sufficient|lack of) (?:information|context|details?|data)\b",
        )
    )
)
_SIGNS = (" not ", "n't ", " no ", " none ", " nothing ", " unable ", " cannot ", " unclear ", " impossible ")
_FURTHER_SIGNS = (" insufficient ", " lack", " nor ", " never ", " unknown ", " neither ")


def says_not_told(tokens: list[str]) -> bool:
    """Return whether a piece states that the context has no answer.

    `tokens` are its words and marks in lower case. A match inside parentheses is ignored.
    """
    joined = " ".join(tokens)
    padded = f" {joined} "
    if not any(sign in padded for sign in _SIGNS + _FURTHER_SIGNS):
        return False
    found = _SILENT.search(joined)
    return found is not None and joined.count("(", 0, found.start()) <= joined.count(")", 0, found.start())
