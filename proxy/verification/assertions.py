"""What in an answer asserts something, and how surely.

A piece is skipped only where the answer itself declines to assert it. A modal alone ("may increase the risk") is how
medicine, law and science state facts, so it lowers the stated confidence and leaves the piece checkable; so does a hedge
that is attributed ("The study suggests that …"), or one that stands in a side clause. Everything is decided from word
tables below, read against the first `_READ` characters of a piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from proxy.verification.cited import find_marks

SKIP_REASONS = {
    "question": "It asks.",
    "instruction": "It tells the reader what to do; a step in a list, or one that cites a source, relays how something is done and is checked.",
    "hedged": "The answer itself does not commit to it (checked after all when the policy verifies hedged statements).",
    "greeting": "It greets, thanks, agrees or wishes well.",
    "offer": "It offers further help.",
    "refusal": "It declines to answer.",
    "not_in_context": "It says that the context does not tell.",
    "opinion": "It voices a taste, a recommendation or a feeling of the writer.",
    "reasoning": "It is the model's own thinking, marked as such.",
    "code": "It is code or raw HTML.",
    "heading": "It is a heading, a label or the header of a table.",
    "lead_in": "It introduces what follows; the items below carry it as their lead.",
    "citation_only": "It only names sources.",
    "confidence": "It says how sure the answer is; the piece before it, or the record around it, takes that on.",
    "no_content": "It holds no content word of its own, such as a bare yes.",
}
"""Every reason for which a piece of an answer is not checked (CL2), with what it says of the piece."""

PLAIN = 0.9
"""The confidence with which a statement without hedge or booster is taken to be stated."""


class Stance(NamedTuple):
    """Why a piece asserts nothing (a key of `SKIP_REASONS`, or None), and the confidence (0–1) with which it is stated."""

    skip: str | None
    confidence: float


_READ = 600
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,;:.()?!]")
_LABEL = re.compile(r"\W*\*\*[^*\n]{1,60}+\*\*:?\s*|\W*\*\*[^*\n]{1,60}:\*\*\s*")

_CONNECTIVES = frozenset(
    "and but or so also however though additionally furthermore moreover therefore thus hence overall finally unfortunately "
    "well then yet still instead similarly".split()
)
_INTERJECTIONS = frozenset(
    "yes yeah yep no nope ok okay sure certainly absolutely definitely indeed right correct exactly true false wow oh ah hmm "
    "thanks hello hi hey greetings cool great nice awesome agreed sorry".split()
)
_EMPTY = _INTERJECTIONS | frozenset(
    "a an the i you he she it we they me him her us them this that these those is are was were be been am do does did have has "
    "had of to in on at for with by from and or but so as if not n't course it's that's i'm i've there's too also very so "
    "here's they're you're what's don't isn't doesn't he's she's".split()
)

_EVALUATION = _EMPTY | frozenset(
    "great good nice cool amazing awesome interesting crazy funny sad beautiful wonderful fantastic terrible horrible bad best fun "
    "weird ironic really pretty so very quite just fascinating impressive lovely excellent incredible unbelievable neat sweet "
    "awful scary strange surprising movie film show thing game story one idea choice lol haha most too bit little kind way".split()
)
_IMPERSONAL = frozenset("it it's there there's one perhaps maybe possibly probably presumably most".split())
_QUOTED = re.compile(r"\"[^\"]{1,200}+\"|“[^“”]{1,200}+”|(?<![\w'])'(?=[A-Z])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}+'(?!\w)")

# Openings, as words joined by single blanks, after connectives and interjections are taken off.
_OPENINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "opinion",
        (
            "i can't believe ", "i cannot believe ", "i couldn't believe ", "i can't wait ", "i can't imagine ", "i cannot imagine ",
            "i can't stand ", "i'm not sure i ", "i am not sure i ",
        ),
    ),
    (
        "offer",
        (
            "let me know ", "feel free to ", "please let me know ", "please feel free ", "if you want me to ",
            "if you have any questions ", "if you have any other questions ", "if you have any further questions ",
            "if you have more questions ", "if you have further questions ", "i can also ", "i can help ", "i'd be happy ", "i would be happy ",
            "i'd be glad ", "i would be glad ", "i'm happy to ", "i am happy to ", "happy to help", "i'm here to ", "i am here to ",
            "don't hesitate to ask", "do not hesitate to ask", "please don't hesitate", "please do not hesitate", "let me help ",
            "let me ",
        ),
    ),
    (
        "greeting",
        (
            "thank you", "thanks for ", "thanks ", "you're welcome", "you are welcome", "great question", "good question",
            "that's a great question", "that is a great question", "that's a good question", "i hope this ", "i hope that ",
            "hope this ", "hope that helps", "good luck", "nice to meet ", "welcome to our chat", "my pleasure", "have a great ",
            "have a nice ", "have a good ", "good morning", "good afternoon", "good evening", "how are you", "of course .",
            "no problem", "glad to help", "i understand your ", "enjoy .",
        ),
    ),
    (
        "refusal",
        (
            "i cannot ", "i can't ", "i can not ", "i am unable to ", "i'm unable to ", "i am not able to ", "i'm not able to ",
            "i won't ", "i will not ", "i don't know", "i do not know", "i'm sorry", "i am sorry", "i apologize", "my apologies",
            "apologies for ", "apologies ,", "sorry ", "as an ai ", "as a language model", "as a large language model", "i'm just an ai", "i am an ai ",
            "i'm an ai ", "i don't have access ", "i do not have access ", "i have no idea", "i'm not sure", "i am not sure",
            "i don't have enough ", "i do not have enough ", "i couldn't ", "i could not ", "i was unable to ", "i don't have any ",
            "i do not have any ", "i don't have information", "i do not have information", "i must decline",
            "i'm not familiar with ", "i am not familiar with ", "i don't have specific ", "i do not have specific ",
        ),
    ),
    (
        "hedged",
        (
            "i think ", "i believe ", "i guess ", "i suppose ", "i assume ", "i imagine ", "i suspect ", "i would guess ",
            "i'd guess ", "my guess ", "i think", "it is possible that ", "it's possible that ",
            "it may be that ", "it might be ", "it could be ", "it is likely that ", "it's likely that ", "it is probable that ",
            "it is unlikely that ", "it's unlikely that ", "it seems ", "it appears that ", "it would seem ", "it is conceivable ",
            "perhaps ", "maybe ", "possibly ", "probably ", "presumably ", "as far as i know", "to my knowledge", "if i recall ",
            "if i remember ", "i'm fairly sure ", "i am fairly sure ", "i'm pretty sure ", "i am pretty sure ", "most likely ",
            "there is a chance ", "there's a chance ", "there might be ", "one possibility ", "i'm guessing ", "i'm not certain ",
        ),
    ),
    (
        "opinion",
        (
            "in my opinion ", "in my view ", "personally ", "i feel ", "i love ", "i like ", "i really like ", "i really love ",
            "i enjoy ", "i prefer ", "i hate ", "i recommend ", "i would recommend ", "i'd recommend ", "i suggest ", "i would suggest ",
            "i'd suggest ", "my favorite ", "my favourite ", "i'm glad ", "i am glad ", "i wish ", "i would love ", "i'd love ",
            "i always wanted ", "i would like ", "i'd like ", "i don't like ", "i agree ", "i wonder ", "i hope ", "that sounds ",
            "that's cool", "that is cool", "that's great", "that is great", "that's awesome", "that's interesting",
            "that is interesting", "that's amazing", "that's nice", "how cool", "how interesting", "sounds like fun", "it sounds ",
            "sounds ",
        ),
    ),
    (
        "instruction",
        (
            "please ", "make sure ", "be sure to ", "be careful ", "remember to ", "don't forget ", "do not forget ", "try to ",
            "you may want to ", "you might want to ", "it is recommended to ", "it's recommended to ", "it is recommended that you ",
            "it's recommended that you ", "you can refer to ", "refer to the ", "see also ", "see the ",
            "it's best to consult ", "it is best to consult ", "it's always best to ", "it is always best to ", "it's always a good idea ",
            "it is always a good idea ", "it's a good idea to ", "it is a good idea to ",
        ),
    ),
)  # fmt: skip

_OFFERING = (
    " let me know ",
    " feel free ",
    " ask ",
    " i can ",
    " i'd be happy ",
    " i would be happy ",
    " i'll ",
    " happy to ",
    " reach out ",
)
_HEDGES = (
    " might be ", " might have been ", " might not be ", " could possibly ", " may possibly ", " might possibly ",
    " probably ", " perhaps ", " maybe ", " possibly ", " presumably ", " supposedly ",
    " appears to ", " appear to ", " appeared to ", " seems to ", " seem to ", " seemed to ", " seems like ", " seems that ",
    " it is likely that ", " is likely that ", " it is possible that ", " it's possible that ", " i think ", " i believe ", " i guess ",
    " i'm not sure ", " i am not sure ",
)  # fmt: skip

_ATTRIBUTIONS = (
    " according to ", " suggest", " study ", " studies ", " research", " scientists ", " experts ", " some people ",
    " passage", " report", " article", " author", " doctors ", " analysts ", " officials ", " police ", " believed ",
    " estimate", " said ", " says ", " stated ", " document", " source ", " sources ", " evidence ", " argue", " the text ",
)  # fmt: skip

_TELLING_QUESTION = re.compile(
    r"\W*(?:[\w ]{1,30}[,!] )?(?:did|do) you know,? (?:that )?(?!who|what|where|when|why|how|if|whether|of|any|about)(?:[^\s?]+\s+){4}",
    re.IGNORECASE,
)
_SIDE = frozenset("which who whom whose because although though while whereas since unless if that".split())

_CONFIDENCES: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.2, (" unlikely ", " improbable ", " doubtful ")),
    (
        0.4,
        (
            " possibly ", " perhaps ", " maybe ", " might ", " could be ", " it is possible ", " it's possible ", " i guess ",
            " not sure ", " conceivable ",
        ),
    ),
    (
        0.5,
        (
            " appears to ", " appear to ", " appeared to ", " seems to ", " seem to ", " seemed to ", " seems like ", " seems that ",
            " uncertain ", " unclear ", " i assume ",
        ),
    ),
    (0.6, (" may ", " i think ", " potentially ", " suggests ", " suggest ", " suggesting ", " believe ")),
    (
        0.7,
        (
            " likely ", " probably ", " presumably ", " believed to ", " estimated ", " roughly ", " reportedly ", " supposedly ",
            " allegedly ", " usually ", " generally ", " fairly sure ", " pretty sure ",
        ),
    ),
)  # fmt: skip
_BOOSTED = (
    (
        1.0,
        (
            " definitely ",
            " undoubtedly ",
            " without doubt ",
            " without a doubt ",
            " no doubt ",
            " absolutely ",
            " guaranteed ",
        ),
    ),
    (
        0.95,
        (
            " certainly ",
            " clearly ",
            " surely ",
            " indeed ",
            " obviously ",
            " of course ",
            " always ",
            " never ",
            " confirmed ",
        ),
    ),
)
_NOT_HEDGES = (" more likely ", " less likely ", " most likely to ", " as likely ", " likely to ", " how likely ")


def _telling(phrases: Iterable[str]) -> frozenset[str]:
    """The longest word of each phrase: a text without any of them holds none of the phrases."""
    return frozenset(max(phrase.split(), key=len) for phrase in phrases)


_HEDGING = _telling(_HEDGES)
_SIGNALS = _telling(phrase for _value, phrases in _CONFIDENCES + _BOOSTED for phrase in phrases)
_BY_FIRST_WORD: dict[str, list[tuple[str, str]]] = {}
for _reason, _beginnings in _OPENINGS:
    for _beginning in _beginnings:
        _BY_FIRST_WORD.setdefault(_beginning.split()[0], []).append((_reason, _beginning))
_MAY_MONTH = re.compile(r"\bMay\b")

_STATED = re.compile(
    r"(?P<before>\d{1,3}(?:\.\d{1,3})?)[ \t]?%[ \t](?:confident|certain|sure|confidence|certainty|likely|probability)\b"
    r"|\b(?:confidence|certainty)(?:[ \t](?:level|score|rating))?[ \t*]{0,4}(?:[:=]|is|of)[ \t*]{0,4}"
    r"(?:(?P<share>\d{1,3}(?:\.\d{1,4})?)[ \t]?(?P<percent>%)?(?:/(?P<scale>100?)\b)?|(?P<word>very high|very low|high|medium|moderate|low))",
    re.IGNORECASE,
)
_CONFIDENCE_KEYS = frozenset(
    "confidence certainty confidence_score confidence_level confidencescore confidencelevel".split()
)
_READ_SOURCES = 4000
_LEAD_IN_WORDS = 20
_ANNOUNCING = frozenset("here following below these steps ways tips follows summary".split())
_FOOTNOTE = re.compile(r"\W{0,3}\[\^?\w{1,20}\]:")
_SOURCE_LIST = re.compile(r"\W{0,4}(?:sources?|references?|citations?|works cited)\W{0,4}:", re.IGNORECASE)
_ADDRESS = re.compile(r"\[[^\[\]]{0,200}\]\([^\s()]{0,400}\)|https?://[^\s<>]{1,500}|www\.[^\s<>]{1,500}")
_SOURCE_WORDS = frozenset("source sources reference references see and also citation citations from link links".split())
_STATED_WORDS = {"very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "very low": 0.1}

_CONTEXT = (
    r"(?:passages?|contexts?|documents?|texts?|sources?|articles?|excerpts?|snippets?|transcripts?|search results?|references?"
    r"|(?:provided|given|available|supplied|above) (?:\w+ ){0,2}(?:information|data|reports?|materials?|content|details|tables?|pages?)"
    r"|(?:information|data|content|details|materials?)(?: \w+)? (?:provided|given|available|above|supplied))"
)
_TELLS = (
    r"(?:mention|contain|provide|specify|say|state|include|discuss|address|give|indicate|list|describe|explain|answer|offer|cover"
    r"|clarify|elaborate|reference|refer|tell|detail|reveal|disclose|have|talk|define|make)"
)
_NOT_TOLD = re.compile(
    rf"\b{_CONTEXT}(?: \w+){{0,4}} (?:(?:do|does|did|has|have) not|don't|doesn't|didn't|hasn't|haven't|cannot|can't|never|lacks?)"
    rf"(?: \w+){{0,2}} (?:{_TELLS}|information|details?)"
    rf"|\b{_CONTEXT}(?: \w+){{0,2}} (?:provides?|contains?|gives?|includes?|offers?|makes?|has|have) no "
    rf"|\b(?:not|n't|nor|never|isn't|aren't|wasn't|weren't)(?: \w+){{0,2}} (?:mentioned|specified|stated|provided|discussed|included|addressed|given|listed"
    rf"|described|clear|found|covered|explained|available|present|indicated|disclosed|detailed)(?: \w+){{0,2}} (?:in|by|from|within|on)"
    rf"(?: \w+){{0,3}} {_CONTEXT}"
    r"|\b(?:not|isn't|aren't|wasn't|weren't) (?:\w+ly )?(?:mentioned|specified|stated|indicated)(?: here)? (?:[.,;]|$)"
    r"|\b(?:no|none|nothing)(?: \w+){0,6} (?:mentioned|specified|stated|provided|given|described|listed|indicated)\b"
    rf"|\b(?:no|none of the) {_CONTEXT} (?:explicitly |specifically |directly )?{_TELLS}"
    r"|\bno (?:(?:specific|explicit|direct|further|other|clear|detailed) )?(?:mention|information)\b"
    rf"|\bno (?:\w+ ){{0,3}}(?:evidence|details?|reference|data|indication|answer|support)\b(?: \w+){{0,8}} {_CONTEXT}"
    r"|\b(?:i|we) (?:can't|cannot|couldn't|could not|did not|didn't|don't|do not|was unable to|am unable to|were unable to)"
    r"(?: \w+)? (?:find|see|determine|locate|confirm|verify|identify|tell|have enough|have sufficient)\b"
    rf"|\b(?:unable|impossible|not possible|not able|cannot|can't|could not|couldn't)(?: \w+){{0,3}} (?:answer|answered|determine|determined|find|inferred|infer"
    rf"|provide|say|tell|confirm|confirmed|verified|verify|conclude|concluded)\b(?: \w+){{0,8}} {_CONTEXT}"
    r"|\b(?:cannot|can't|could not) be (?:determined|answered|inferred|verified|confirmed|concluded)\b"
    rf"|^(?:it is|it's|this is|is) (?:unclear|not clear|unknown|not known)(?: \w+){{0,10}} {_CONTEXT}"
    r"|^(?:unable|impossible|not possible|not able) to (?:answer|determine|find|provide)\b"
    r"|\b(?:not enough|insufficient|does not have enough|no sufficient|lack of) (?:information|context|details?|data)\b"
)
_NEGATIVE = (
    " not ",
    "n't ",
    " no ",
    " unable ",
    " cannot ",
    " unclear ",
    " impossible ",
    " insufficient ",
    " lack",
    " nor ",
    " never ",
    " unknown ",
)

_IMPERATIVES = frozenset(
    "add allow apply arrange ask attach avoid bake beat begin blend boil bring brush call check choose chop clean click close coat "
    "combine compare complete connect consider consult contact continue cook cool cover create cut decide defrost delete describe "
    "dip discard dissolve divide do don't download drain drink drizzle dry eat enable enjoy ensure enter explain fill find flip "
    "fold follow fry garnish gather get give go grate grease grill grind heat hold identify insert install keep leave let lift "
    "locate log look lower make marinate measure melt mix move navigate note notice open peel perform place pour preheat "
    "prepare press pull purchase push put read reduce refer refrigerate remove repeat replace rest restart review rinse roast roll "
    "rub run save scroll seal season see seek select send separate serve set shake simmer sit slice soak speak spray spread sprinkle "
    "squeeze start stay steam stir stop store strain submit switch take talk tap test thread tie toss touch transfer trim try turn type "
    "unplug update upload use verify visit wait warm wash watch wear whisk wipe work wrap write".split()
)
_AFTER_IMPERATIVE = frozenset(
    "the a an your this that it them all any each some to in on with into up out off from for over at as if how whether both one two "
    "three half sure aside until about around down back only not no well hot cold every these those their away through by and".split()
)
_NEVER_NOUNS = frozenset(
    "add allow avoid choose combine consider consult continue create decide delete describe discard dissolve don't drain eat "
    "enable enjoy ensure enter explain follow gather identify insert install keep let locate make marinate melt navigate "
    "never preheat prepare put refrigerate remove replace rinse scroll seek serve squeeze stir submit "
    "take tap unplug upload verify visit wait whisk wipe".split()
)
_NOTES = ("please note", "note", "please remember", "remember", "keep in mind", "be aware", "please be aware")
_FINITE = frozenset("is are was were has have had will can may does did said says".split())


def stance(text: str) -> Stance:
    """What the answer does with one sentence or clause: whether it asserts it, and how surely."""
    tokens = _tokens(text)
    words = [token for token in tokens if token[0].isalnum()]
    padded = f" {' '.join(words)} "
    if any(sign in padded for sign in _NEGATIVE) and _says_not_told(" ".join(_opened(tokens))):
        return Stance("question" if is_question(text) else "not_in_context", PLAIN)
    if _QUOTED.search(text, 0, _READ):  # what stands in quotation marks is another's hedge or taste
        tokens = _tokens(_QUOTED.sub(" quoted ", text[:_READ]))
        words = [token for token in tokens if token[0].isalnum()]
        padded = f" {' '.join(words)} "
    return Stance(_skip(text, tokens, words, padded), _confidence(text, words, padded))


def is_question(text: str) -> bool:
    """Whether the sentence asks: it ends in a question mark that no quotation encloses. "Did you know that …" tells."""
    if _TELLING_QUESTION.match(text):
        return False
    return text.rstrip(" \t*_)]").endswith(("?", "？", "؟", "?!"))


def is_only_confidence(text: str) -> bool:
    """Whether the sentence says nothing but how sure the answer is, such as "Confidence: 80%"."""
    match = _STATED.search(text) if len(text) <= 80 and "onfiden" in text or "ertainty" in text[:80] else None
    return match is not None and sum(map(str.isalpha, text)) - sum(map(str.isalpha, match.group())) <= 8


def is_lead_in(text: str) -> bool:
    """Whether the sentence only introduces what follows it: it ends in a colon and is short, or it announces."""
    if not text.rstrip(" \t*_").endswith((":", "：")):
        return False
    words = _tokens(text)
    return len(words) <= _LEAD_IN_WORDS or not _ANNOUNCING.isdisjoint(words)


def is_only_sources(text: str, bare: str) -> bool:
    """Whether the sentence only names sources: marks, addresses, a footnote's text, or a short list after "Sources:".

    `bare` is `text` with its citation marks blanked out.
    """
    if _FOOTNOTE.match(text) or (len(text) <= 200 and _SOURCE_LIST.match(text)):
        return True
    if bare is text and "http" not in text and "www." not in text:
        return False
    left = _ADDRESS.sub(" ", bare[:_READ_SOURCES])
    return len(bare) <= _READ_SOURCES and _SOURCE_WORDS.issuperset(
        token for token in _TOKEN.findall(left.lower()) if token[0].isalnum()
    )


def named_confidence(key: str, value: object) -> float | None:
    """The confidence (0–1) that a field of a JSON answer states when its name says that it is one."""
    if key.lower() not in _CONFIDENCE_KEYS or isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _STATED.search(f"confidence: {value}")
        return _stated(match) if match else None
    if isinstance(value, (int, float)) and 0 <= value <= 100:
        return float(value) if value <= 1 else value / 100
    return None


def _tokens(text: str) -> list[str]:
    if "*" in text[:3] and (label := _LABEL.match(text)) and label.end() < len(text):
        text = text[label.end() :]
    return [token.replace("’", "'") for token in _TOKEN.findall(text[:_READ].lower())]


def _skip(text: str, tokens: list[str], words: list[str], padded: str) -> str | None:
    if is_question(text):
        return "question"
    opened = _opened(tokens)
    if not opened:
        return "greeting" if words and words[0] not in _BARE else "no_content"
    opened = _without_note(opened)
    opening = " ".join(opened) + " "
    plain = " ".join(token for token in opened if token[0].isalnum()) + " "
    for reason, beginning in _BY_FIRST_WORD.get(opened[0], ()) if opened else ():
        if plain.startswith(beginning) or opening.startswith(beginning):
            return None if reason == "hedged" and opened[0] in _IMPERSONAL and _is_attributed(text, padded) else reason
    if plain.startswith("if ") and any(phrase in padded for phrase in _OFFERING):
        return "offer"
    if _EMPTY.issuperset(words):
        return "no_content"
    if _EVALUATION.issuperset(words):
        return "opinion"
    if _is_hedged(text, tokens, padded):
        return "hedged"
    return "instruction" if _is_imperative(opened) else None


_BARE = frozenset("yes yeah yep no nope true false right correct exactly indeed".split())


def _opened(tokens: list[str]) -> list[str]:
    """The tokens after connectives, interjections and the punctuation between them."""
    place = 2 if tokens[:2] == ["of", "course"] else 0
    while place < len(tokens) and (
        tokens[place] in _CONNECTIVES or tokens[place] in _INTERJECTIONS or not tokens[place].isalnum()
    ):
        if tokens[place][0].isalnum() and not tokens[place].isalnum():
            break
        if tokens[place] in _INTERJECTIONS and place + 1 < len(tokens) and tokens[place + 1][0].isalnum():
            break
        place += 1
    return tokens[place:]


def _says_not_told(opened: str) -> bool:
    """Whether the piece, not an aside in parentheses, says that the context does not tell."""
    found = _NOT_TOLD.search(opened)
    return found is not None and not ("(" in opened[: found.start()] and ")" not in opened[: found.start()])


def _is_attributed(text: str, padded: str) -> bool:
    """Whether the piece reports what someone else says, or cites a source for it."""
    return any(name in padded for name in _ATTRIBUTIONS) or next(find_marks(text), None) is not None


def _without_note(tokens: list[str]) -> list[str]:
    """The tokens after "note that" and its like, which assert what follows them."""
    for note in _NOTES:
        words = note.split()
        if tokens[: len(words)] == words and tokens[len(words) : len(words) + 1] in (["that"], [":"], [","]):
            return tokens[len(words) + 1 :]
    return tokens


def _is_hedged(text: str, tokens: list[str], padded: str) -> bool:
    """Whether the main clause, not a side clause, is hedged by the answer itself and not by whoever it reports."""
    if _HEDGING.isdisjoint(tokens) or not any(hedge in padded for hedge in _HEDGES) or _is_attributed(text, padded):
        return False
    head: list[str] = []
    for place, token in enumerate(tokens):
        if place >= 5 and (token in _SIDE or token in ",;:("):
            break
        if token[0].isalnum():
            head.append(token)
    main = f" {' '.join(head)} "
    return any(hedge in main for hedge in _HEDGES)


def _is_imperative(tokens: list[str]) -> bool:
    tokens = [token for token in tokens[:8] if token[0].isalnum()]
    if tokens and tokens[0] in (
        "first",
        "next",
        "then",
        "finally",
        "once",
        "simply",
        "just",
        "gently",
        "carefully",
        "always",
    ):
        tokens = tokens[1:]
    if len(tokens) < 2 or tokens[0] not in _IMPERATIVES:
        return False
    if tokens[1] in _FINITE or _FINITE.intersection(tokens[1:3]) and tokens[0] not in _NEVER_NOUNS:
        return False
    return tokens[0] in _NEVER_NOUNS or tokens[1] in _AFTER_IMPERATIVE


def _confidence(text: str, words: list[str], padded: str) -> float:
    """The confidence that is stated in so many words, else the lowest that a hedge implies, else what a booster does."""
    if ("onfiden" in text or "ertain" in text or "sure" in text or "%" in text) and (
        match := _STATED.search(text[:_READ])
    ):
        return _stated(match)
    if _SIGNALS.isdisjoint(words):
        return PLAIN
    for phrase in _NOT_HEDGES:
        if phrase in padded:
            padded = padded.replace(phrase, " ")
    if " may " in padded and _MAY_MONTH.search(text):
        padded = padded.replace(" may ", " ")
    for value, phrases in _CONFIDENCES:
        if any(phrase in padded for phrase in phrases):
            return value
    for value, phrases in _BOOSTED:
        if any(phrase in padded for phrase in phrases):
            return value
    return PLAIN


def _stated(match: re.Match[str]) -> float:
    if match["word"]:
        return _STATED_WORDS[match["word"].lower()]
    if match["before"]:
        return min(1.0, float(match["before"]) / 100)
    value = float(match["share"])
    if match["scale"]:
        return min(1.0, value / float(match["scale"]))
    return min(1.0, value / 100 if match["percent"] or value > 1 else value)
