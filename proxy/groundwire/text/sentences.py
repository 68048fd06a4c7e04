"""Split one block of text into sentences, and sentences into clauses.

The boundaries are those of the library, corrected for the answers of models: a citation after the full stop belongs to
the sentence before it; there is no boundary inside a quotation, a parenthesis, code or a link; a line break ends a
sentence unless the line was merely wrapped. Clauses are split only where each can be understood alone.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sentencex import get_sentence_boundaries

QUOTE_LIMIT = 600
"""Maximum length of a quotation in characters; an opening mark without a closing one in this range is ignored."""

_WINDOW = 4096
_WRAPPED_LINE = 60

# Marks that the library pairs in quadratic time (_KEEP pairs them instead), and CJK stops (see _CJK_END).
_MASK = str.maketrans(
    dict.fromkeys("\"'`“”‘’«»‹›„‚「」『』《》〈〉【】", "*") | dict.fromkeys("。！？｡", "x") | {"\n": " "}
)

_KEEP = re.compile(
    rf'(?<![\w"])"(?=[^\s"])[^"]{{1,{QUOTE_LIMIT}}}+"(?!\w)'
    rf"|“[^“”]{{1,{QUOTE_LIMIT}}}+”"
    rf"|«[^«»]{{1,{QUOTE_LIMIT}}}+»"
    rf"|„[^„“”]{{1,{QUOTE_LIMIT}}}+[“”]"
    rf"|「[^「」]{{1,{QUOTE_LIMIT}}}+」"
    rf"|『[^『』]{{1,{QUOTE_LIMIT}}}+』"
    rf"|(?<!\w)‘(?:[^‘’]|(?<=\w)’(?=\w)){{1,{QUOTE_LIMIT}}}+’(?!\w)"
    r"|(?<![\w'])'(?=[A-Z])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}+'(?!\w)"
    r"|`[^`\n]{1,300}+`"
    r"|\([^()]{1,300}+\)"
    r"|\[[^\[\]]{1,300}+\]"
    r"|https?://[^\s<>]{1,500}+"
)
_CJK_END = re.compile(r"[。！？｡]++(?:[」』”’\"）)]++(?!\w))?+")
_CLOSED = re.compile(r"[.!?…][\"'”“’»*_)\]¹²³⁴-⁹]++(?=\s++[\"“‘*_(]*+[A-Z])")
_PARTED = re.compile(r"(?<=[\w'\"] )[!?]++(?=\s)")  # "is it ? it is": text joined from tokens
_CLOSERS = re.compile(r"[\"'”’»*_)\]]+")
_CLOSING = frozenset("\"'”’»*_)]")
_CITING = frozenset("[【(¹²³⁰⁴⁵⁶⁷⁸⁹")
_ILL = re.compile(r"\bill\.\s(?=[A-Z])")  # not the state, which is "Ill."
_WORD = re.compile(r"[^\W_]")
_GLUED = re.compile(
    r"[a-z]{2}\.(?!Com|Net|Org|Name)(?:[A-Z][a-z]{2,20}+(?=[\s,])|(?:It|In|He|We|If|As|At|On|To|A|I)\s)"
)
_CITES = re.compile(
    r"(?:[ \t]?(?:\[\^?[^\[\]\n]{0,30}\d[^\[\]\n]{0,30}\](?:\(https?://[^\s()]{1,300}\))?|【[^【】\n]{1,40}】|[¹²³⁰⁴-⁹]+"
    r"|\((?:source|doc|document|passage|ref)s?\.?[ \t:#]?[^()\n]{0,30}\d[^()\n]{0,10}\)))+(?=\s|$|[.,;])[.]?",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n[ \t>]*+(?=[^\W_a-z]|[\[\"“*|])")
_ENUMERATOR = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])[.)]\W*$")
_SHORTENED = frozenset("approx no nos fig figs eq sec ch vol pp p art para ca est min max avg dept st vs".split())
_UNFINISHED = frozenset(
    "a an the of in on at to for by with from and or but nor as is are was were be that which who than into its "
    "their his her mr mrs ms dr st".split()
)
_LINE_ENDS = frozenset(".!?:;。|")
_LAST_WORD = re.compile(r"([^\W\d_]+)\.?$")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans `(start, end)` of the sentences of one block, without the white space around them.

    Every letter and digit of `text` is in exactly one span. Accepts any Unicode; lazy, and linear in the length.
    """
    start = 0
    for cut in chain(_cuts(text), (len(text),)):
        piece = text[start:cut]
        if cut <= start or (cut < len(text) and len(piece) < 12 and _ENUMERATOR.match(piece)):
            continue
        if _WORD.search(piece):
            stripped = piece.strip()
            first = start + piece.index(stripped)
            yield first, first + len(stripped)
        start = cut


def _cuts(text: str) -> Iterator[int]:
    """Yield the offsets at which a new sentence begins, in order."""
    cuts = heapq.merge(
        (cut for found in library_cuts(text) if (cut := _shift(text, found))),
        (match.end() for match in _CLOSED.finditer(text) if _closes_a_sentence(text, match)),
        (match.end() for match in _PARTED.finditer(text)),
        (match.end() for match in _CJK_END.finditer(text)),
        (match.start() + 1 for match in _BREAK.finditer(text) if _ends_line(text, match.start())),
        (match.end() for match in _ILL.finditer(text)),
    )
    return _outside_kept(text, cuts)


def _outside_kept(text: str, cuts: Iterable[int]) -> Iterator[int]:
    """Yield the cuts outside of quotations, parentheses, brackets, code and URLs of bounded length."""
    spans = (match.span() for match in _KEEP.finditer(text))
    start, end = next(spans, (0, 0))
    for cut in cuts:
        while end <= cut and end:
            start, end = next(spans, (0, 0))
        if not (start < cut < end):
            yield cut


def library_cuts(text: str) -> Iterator[int]:
    """Yield the offsets at which the library ends a sentence, in order.

    Unlike the library, it is linear and accepts any Unicode. The library is called on one window at a time; the next
    window begins at the last boundary found in the one before.
    """
    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW].translate(_MASK)
        if not _WORD.search(window):
            start += len(window)
            continue
        ends = [start + boundary["end_index"] for boundary in _boundaries(window)]
        if start + len(window) < len(text):
            ends.pop()  # the end of the window need not end a sentence
        yield from ends
        start = ends[-1] if ends else start + len(window)


def _boundaries(text: str) -> list[dict[str, int]]:
    try:
        found: list[dict[str, int]] = get_sentence_boundaries("en", text)
    except UnicodeEncodeError:  # the library does not accept lone surrogates
        found = get_sentence_boundaries("en", re.sub("[\ud800-\udfff]", "x", text))
    return found


def _shift(text: str, cut: int) -> int:
    """Move a boundary after the closing marks and citations that belong to its sentence; return 0 to drop it."""
    if cut >= len(text):
        return 0
    end = cut
    while end and text[end - 1].isspace():
        end -= 1
    if end == cut and not text[cut].isspace() and _is_one_name(text, cut):
        return 0
    if (closed := _closed(text, end)) > end:
        end = closed
        if _follower(text, end).islower():
            return 0
    follower = _follower(text, end)
    if follower and follower in _CITING and (cites := _CITES.match(text, end)):
        return cites.end() if not _follower(text, cites.end()).islower() else max(cut, end)
    if follower.islower() and text[end - 1] == "]":
        return text.rindex("[", 0, end) if "[" in text[max(0, end - 40) : end] else cut
    if (
        follower.isdigit()
        and (word := _LAST_WORD.search(text[max(0, end - 12) : end]))
        and word[1].lower() in _SHORTENED
    ):
        return 0
    return max(cut, end)


def _closed(text: str, end: int) -> int:
    """Return the end of the closing marks at `end` if white space or nothing follows them; else `end`."""
    if end < len(text) and text[end] in _CLOSING and (closers := _CLOSERS.match(text, end)):
        return closers.end() if closers.end() == len(text) or text[closers.end()].isspace() else end
    return end


def _follower(text: str, end: int) -> str:
    """Return the first character after `end`, at most one space away."""
    return text[end : end + 2].lstrip()[:1]


def _is_one_name(text: str, cut: int) -> bool:
    """Return whether a full stop without a space after it is inside a name such as "Node.Js"."""
    return text[cut - 1] == "." and text[cut].isalnum() and not _GLUED.match(text, max(0, cut - 3))


def _closes_a_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether closing marks end a sentence: a parenthesis only if it contains a whole sentence."""
    if ")" not in match.group():
        return True
    opening = text.rfind("(", max(0, match.start() - 300), match.start())
    before = text[max(0, opening - 3) : opening].rstrip()
    return opening >= 0 and (not before or before[-1] in ".!?")


def _ends_line(text: str, newline: int) -> bool:
    """Return whether a line break ends a sentence.

    It does after a hard break, sentence punctuation or an empty line, and after a short line unless that ends in a
    comma or a function word.
    """
    line = text[text.rfind("\n", 0, newline) + 1 : newline]
    bare = line.strip()
    if not bare or bare[-1] in _LINE_ENDS or line[-2:] == "  " or bare[-1] == "\\":
        return True
    if len(bare) >= _WRAPPED_LINE or bare[-1] == ",":
        return False
    return bare.rpartition(" ")[2].rstrip(".").lower() not in _UNFINISHED


_JOINT = re.compile(
    r"(?P<semicolon>;)\s+(?=\w)|,\s+(?=(?:and|but|while|whereas|yet|however|although|though),?\s)|\s(?=but\s)",
    re.IGNORECASE,
)
_CLAUSE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LONGEST = 1200
_BRINGING = frozenset("that because since".split())
_FACT_WORDS = 4

_CLEARLY_FINITE = frozenset(
    "is are was were has had will would can cannot could may might must should did does fell rose grew began "
    "became went made took gave won lost came".split()
)
_FINITE = _CLEARLY_FINITE | frozenset(
    "isn't aren't wasn't weren't hasn't hadn't won't wouldn't can't couldn't doesn't didn't it's he's she's they're "
    "got led held kept left met paid put ran said saw sold sent set spent stood told wrote found founded fought "
    "bought brought built chose drew drove flew knew lay meant read sang sat sought spoke taught thought threw "
    "understood wore increased decreased declined dropped reached remained reported received released represents "
    "requires provides includes contains means makes takes gives becomes remains offers helps causes occurs begins "
    "ends lies shows states says notes adds explains describes uses allows refers consists works lives stands "
    "starts plays covers costs grows falls rises seems appears tends differs exceeded totaled totalled averaged "
    "announced launched opened closed joined moved died served played worked lived started ended continued created "
    "produced published signed named called used killed caused helped wanted needed stated claimed believed argued "
    "agreed decided refused accounted amounted expanded acquired developed introduced".split()
)
_DETERMINERS = frozenset("the a an its his her their our this these those".split())
_SUBJECTS = _DETERMINERS | frozenset(
    "it he she they we you i there my your some many most several both each all another one two three four five six "
    "seven eight nine ten".split()
)
_SUBORDINATE_LEFT = frozenset(
    "that if when whenever whether because unless since until before after although though either neither nor "
    "between once while said says believe believes think thinks claims claimed stated states suggests suggest "
    "according not only".split()
)
_SUBORDINATE_RIGHT = frozenset("that which who whom whose where".split())
_NO_NOUNS = frozenset(
    "then also thus therefore later now still not only never often always soon again to in on at for with by from "
    "of as if when who which that whose what how why where so yet hence even just rather than instead be been "
    "have do get make take see".split()
)
_SAME_SUBJECT = frozenset(
    "rather only also instead not merely simply just do does did is are was were has have".split()
)
_NAME = re.compile(r"[A-Z\d$€£]")


def clauses(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the clauses of `sentence`, in order and covering every word; one span if no split is safe.

    A split is safe between two parts that each have a subject and a finite verb, if no word of the first (a "that", an
    "if", an "according to", a "not only") governs the second. The conjunction begins the second part.
    """
    start = 0
    for end, after, is_semicolon in _joints(sentence):
        left, right = sentence[start:end], sentence[after:]
        if _is_complete(left, is_semicolon) and _opens_clause(right, is_semicolon):
            yield start, end
            start = after
    yield start, len(sentence)


def halves(sentence: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield each way to split the sentence in two before a conjunction or after a semicolon, safe or not."""
    for end, after, _is_semicolon in _joints(sentence):
        words = _CLAUSE_WORD.findall(sentence[after : after + 80])
        if len(words) > 3 and words[1].lower() not in _SAME_SUBJECT:
            yield (0, end), (after, len(sentence))


def states_fact(words: Sequence[str]) -> bool:
    """Return whether a "that", "because" or "since" begins a clause with a subject and a verb.

    "I love that it takes place at sea" expresses an opinion, but also asserts a fact. `words` are in lower case.
    """
    for place, word in enumerate(words):
        if word in _BRINGING and words[place + 1 : place + 2] and words[place + 1] in _SUBJECTS - {"i", "we", "you"}:
            return not _FINITE.isdisjoint(words[place + 2 : place + 8]) and len(words) - place > _FACT_WORDS
    return False


def _joints(sentence: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the places where clauses may meet: the end of the first, the start of the second, if at a semicolon."""
    if len(sentence) > _LONGEST or not ("," in sentence or ";" in sentence or " but " in sentence):
        return
    joints = {joint.start(): joint for joint in _JOINT.finditer(sentence)}
    for start in _outside_kept(sentence, joints) if joints else ():
        yield len(sentence[:start].rstrip()), joints[start].end(), joints[start]["semicolon"] is not None


def _is_complete(left: str, at_semicolon: bool) -> bool:
    words = [word.lower() for word in _CLAUSE_WORD.findall(left)]
    if len(words) < 3 or (_FINITE.isdisjoint(words) and not any(_acts(words, at) for at in range(2, len(words)))):
        return False
    return at_semicolon or _SUBORDINATE_LEFT.isdisjoint(words)


def _opens_clause(right: str, at_semicolon: bool) -> bool:
    """Return whether the text after a joint begins with a subject and has a finite verb soon after it."""
    words = _CLAUSE_WORD.findall(right[:160])
    if not at_semicolon or (words and words[0].lower() in ("and", "but", "while", "whereas", "yet", "however")):
        words = words[1:]
    if len(words) < 3:
        return False
    head = words[0].lower()
    if head not in _SUBJECTS and not _NAME.match(words[0]):
        verb = words[1].lower()
        finite = (
            verb in _CLEARLY_FINITE or words[2].lower() in _CLEARLY_FINITE or (at_semicolon and verb.endswith("ed"))
        )
        return finite and head not in _FINITE and head not in _NO_NOUNS and not head.endswith(("ly", "ing", "ed"))
    lowered = [word.lower() for word in words]
    for place, word in enumerate(lowered[1:7], start=1):
        if word in _SUBORDINATE_RIGHT:
            return False
        if word in _FINITE or (place > 1 and _acts(lowered, place)):
            return True
    return head in ("it's", "he's", "she's", "they're")


def _acts(words: Sequence[str], place: int) -> bool:
    """Return whether a word is a past-tense verb with its object: "approved the plan", not "approved by the board"."""
    return words[place].endswith("ed") and words[place + 1 : place + 2] != [] and words[place + 1] in _DETERMINERS
