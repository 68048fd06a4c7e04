"""Recognise sentences that ask or instruct, which are never evidence, and classify the intent of a question.

English only. A sentence is a request only if it clearly addresses the assistant or asks something. Doubtful sentences
remain evidence, because a dropped fact makes a true answer look unsupported.
"""

from __future__ import annotations

import re

from groundwire.domain import Intent

_ADVERBS = (
    r"(?:(?:please|kindly|then|also|always|only|just|now|next|first|second|third|finally|lastly|otherwise|instead|"
    r"simply|carefully|directly|and|but|so|step \d+[:.])[ ,]+){0,4}"
)
_SPEECH = (
    r"answer|respond|reply|summari[sz]e|explain|describe|write|list|tell|give|provide|return|output|generate|create|"
    r"translate|rewrite|rephrase|paraphrase|extract|classify|compare|analy[sz]e|identify|cite|quote|mention|refer|"
    r"rely|base|say|follow|format|think|read|review|consider|evaluate|determine|choose|select|complete|draft|produce|"
    r"include|ensure|avoid|ignore|limit|keep|use|speak|act|imagine|pretend|let|help|show|find|calculate|compute|"
    r"convert|verify|check|decide|judge|rate|rank|suggest|recommend|discuss|outline|highlight|state|report|make sure|"
    r"try|begin|start|do|be|set|fill|look|stick|restrict|acknowledge|admit|indicate|utili[sz]e|assess|draw|propose|"
    r"name"
)
_OBJECT = (
    r"(?:$|[.:!]|(?:the|a|an|your|my|me|us|in|as|with|only|to|from|on|based|using|it|this|that|these|those|each|every|"
    r"all|any|no|not|if|whether|what|why|how|who|when|where|which|both|at|up|out|one|two|three|json|short|brief|"
    r"concise\w*|clear\w*|friendly|polite|helpful|honest|accurate|precise|specific|professional|sources?|citations?|"
    r"answers?|sure|so|like|step|strictly|exactly|yes|i|you|by|for|markdown|english|nothing|directly|politely|bullet|"
    r"plain|solely|inline|their|its|information|text|document|context|valid|relevant|additional|examples?|some|key|"
    r"full|complete|simple|own|thorough\w*|careful\w*|factual|detailed|exact|direct|\d+|[\"'\[{`])\b|[\"'\[{`])"
)
_IMPERATIVE = re.compile(rf"{_ADVERBS}(?:{_SPEECH})[ ,]*{_OBJECT}", re.IGNORECASE)
_FORBIDDEN = re.compile(
    rf"{_ADVERBS}(?:do not|don['’]?t|never|under no circumstances|try not to|you (?:must|should) not)[ ,]+(?:ever )?"
    rf"(?:{_SPEECH}|make|invent|fabricate|hallucinate|guess|assume|add|repeat|reveal|offer|ask|explicitly|directly|"
    rf"share|go|apologi[sz]e|attempt|directly|output|number|over|exceed \d+ (?:words|sentences))\b",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(
    r"(?:hi|hello|hey|thanks|thank you|dear (?:assistant|ai))\b.{0,30}$|you are (?:now )?(?:a|an|the|my|"
    r"our) (?:\S+ ){0,6}?(?:assistant|chatbot|bot|ai|model|expert|agent|helper|system|tutor|analyst|writer|editor|"
    r"translator|engineer|professional|specialist|teacher|lawyer|advisor|consultant|developer|reviewer|researcher|"
    r"librarian|judge|grader|evaluator)\b|you are (?:helpful|given|provided|tasked|asked|going|to|required|trained|"
    r"designed|able|not allowed|speaking|talking|answering|having|chatting)\b|you(?:['’]re| will be)? (?:given|"
    rf"provided|asked|tasked)\b|you have (?:been given|access to)\b|you (?:should|must|will|can|may|need to|have to|"
    rf"are to|shall|always|never|only|do)(?: not| never| always| only| also)* (?:{_SPEECH}|speak)\b|(?:your|"
    r"the) (?:answer|response|reply|output|task|job|role|goal|purpose|objective|summary|final answer|"
    r"responsibilit\w+)s? (?:should|must|is to|is|are|needs? to|has to|will|can|may|shall)\b|(?:your|all) (?:answers|"
    r"responses)\b|(?:i|we) (?:want|need|would like|expect) (?:you|an? (?:answer|summary|overview|list|"
    r"explanation))\b|i['’]d like (?:you|to know)\b|i (?:want|need|would like) to (?:know|understand|find out|ask|"
    r"learn|hear)\b|(?:can|could|would|will) you\b|(?:act|behave) as\b|use (?:the|only|these|this) (?:following|"
    r"provided|given|retrieved|context|documents?|sources?|information)\b|(?:here|below) (?:is|are)\b.{0,80}:?$|"
    r"context information is below|(?:the )?(?:context|documents?|sources?|passages?|text|information|question|"
    r"user(?:'s)? question|query) (?:is|are) (?:given |provided |listed )?(?:below|above|delimited|enclosed|"
    r"wrapped)\b|now it['’]s your turn|begin!?$|let['’]?s think\b|take a deep breath|bear in mind that your\b|"
    r"no preamble|in your (?:answer|response)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:if|when|whenever|in case|unless|given|based on|using|from|with|for|according|after|before|in|as)\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"[#*_\s>-]{0,8}(?:(?:user|human|original|my|final|customer|input)(?:['’]s)? )?(?:question|query|q|task|"
    r"instructions?|request|answer|helpful answer|"
    r"response|output|rules|guidelines|requirements|format|output format|tone|style|assistant|ai)\s*[*_]{0,2}\s*:",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"[#*_\s>-]{0,8}(?:(?:retrieved|relevant|reference|provided|search|following|the|additional) ){0,2}(?:context|"
    r"documents?|sources?|passages?|information|background|results?|excerpts?|articles?|text|data|knowledge base|"
    r"facts|content|instructions?|rules|guidelines|requirements|constraints|tasks?|question|query|answer|"
    r"(?:output )?format|tone|style|role)\s*[*_]{0,2}\s*:?\s*[*_]{0,2}$",
    re.IGNORECASE,
)
_QUESTION_END = re.compile(r"\?[\"'”’)\]*_\s!?]{0,6}$")
_MARK = re.compile(r"[\s>*_#•-]{0,8}(?:\(?\d{1,2}[.)]\s+)?[*_\"“]{0,2}")
_STATED_FACT = re.compile(
    r"\bthat\b(?! (?:you|it is not|the (?:answer|context|question|information|document|text)|i )\b)(?: \S+){3}",
    re.IGNORECASE,
)
_STATING = re.compile(r"(?:\w+ ){0,3}(?:tell|mention|say|remind|inform|explain|note|state)\b", re.IGNORECASE)
_LONGEST = 1500


def is_question(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return bool(_QUESTION_END.search(sentence[-12:]))


def is_request(sentence: str) -> bool:
    """Return whether a sentence asks something or instructs the assistant, and so asserts nothing."""
    mark = _MARK.match(sentence)
    plain = sentence[mark.end() if mark else 0 : _LONGEST].rstrip()
    if not plain or is_question(plain) or _LABELLED.match(plain) or _INTRODUCTION.match(plain):
        return True
    if _STATING.match(plain) and _STATED_FACT.search(plain):
        return False
    return _speaks_to_assistant(plain) or _conditional_request(plain)


def is_cue(sentence: str) -> bool:
    """Return whether a sentence is a bare label, such as "Helpful Answer:"."""
    labelled = _LABELLED.match(sentence)
    return bool(labelled and labelled.end() == len(sentence.rstrip()))


def _speaks_to_assistant(plain: str) -> bool:
    return bool(_IMPERATIVE.match(plain) or _FORBIDDEN.match(plain) or _TO_ASSISTANT.match(plain))


def _conditional_request(plain: str) -> bool:
    """Return whether a request follows a condition, after one of the first four commas: "If unsure, just say so"."""
    if not _CONDITION.match(plain):
        return False
    clauses = plain.split(",", 4)
    return any(_speaks_to_assistant(rest.lstrip()) for rest in clauses[1:])


_MAX_LENGTH = 2000

_KINDS: dict[Intent, str] = {
    "why": (
        r"\b(?:why|how come|what (?:\w+ )?(?:caused|causes|led to|explains)|for what reasons?|what (?:is|are|was|"
        r"were) the (?:\w+ )?(?:reasons?|causes?|motives?|rationale)|give (?:me )?(?:a |the )?reasons?)\b"
    ),
    "compare": (
        r"\b(?:compar(?:e|es|ed|ing|ison)|versus|vs\.?|differences?|differs?|contrast|better than|worse than|"
        r"pros and cons)\b|\bwhich (?:\w+ ){0,4}?(?:is|are|was|has|have|costs?|lasts?) (?:the )?(?:more|less|"
        r"better|worse|best|worst|most|least|\w{2,}(?:er|est))\b(?=.*(?:\bor\b|\bthan\b|\bof the (?:two|three)\b|"
        r"\bbetween\b))|\b(?:more|less|fewer|\w{3,}er) (?:\w+ ){0,4}?than\b"
    ),
    "count": (
        r"\b(?:how many|how often|(?:what(?:'s| is| was| are)|tell me|give me) the (?:total )?(?:number|count) of|"
        r"count (?:the|all|how|of|up)|number of .{1,60}\?)|^\W*count\b"
    ),
    "list": (
        r"\b(?:(?:list|enumerate|itemi[sz]e|name) (?:all|the|every|each|some|three|four|five|ten|\d+|me|any|up|"
        r"out)|list of|what are (?:all|the (?:\w+ )?(?:\w+s)\b)|what (?:kinds|types|sorts) of|"
        r"which (?:\w+ ){0,2}?\w+s (?:are|were|do|did|have|can|does|is|must|may|should)|give me (?:all|the names|"
        r"examples|every)|show (?:me )?all|what (?:\w+ )?(?:options|features|steps|items|documents|plans|"
        r"countries|products) )\b|^\W*list\b"
    ),
    "lookup": (
        r"\b(?:who|whom|whose|when|where|which|what|what's|how (?:much|long|far|old|big|tall|high|fast|late|early|"
        r"large|soon)|how (?:is|are|was|were|do|does|did|can|to))\b|^\W*(?:is|are|was|were|do|does|did|can|could|"
        r"has|have|had|will|would|should|may|must)\b|\b(?:find|look up|tell me|let me know|show me|give me)\b"
    ),
}
_PATTERNS = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS.items()]
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
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "other")
