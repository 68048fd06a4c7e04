"""The quotation verifier: finds the quotations of an answer and looks them up in the sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundwire.domain import Citation, Claim, Source, Verdict
from groundwire.errors import EvidenceGroundingError
from groundwire.evidence.index import Context, cite
from groundwire.extras import require_extras
from groundwire.policy import Policy, QuotePolicy
from groundwire.report import QuoteCounts, to_json
from groundwire.text.folding import Folded, fold
from groundwire.text.reading import Reading
from groundwire.text.words import CALENDAR, STOPWORDS, UNIT_WORDS, Word, are_opposed, words

_LETTER_IN_BRACKETS = re.compile(r"\[(\w)\](?=\w)")
_ELISION = re.compile(r"\[[^\[\]\n]{0,80}\]|…|\.{3,}|(?:\. ){2,}\.")
_STYLE = " \t\n\r.,;:!?-–—*_[](){}"
_INNER_MARK = re.compile(r"(?<!\w)'|'(?!\w)")

_MIN_FUZZY_CHARS, _MIN_FUZZY_WORDS = 20, 4
_SHORT_WORDS = 4
_MAX_FUZZY_STEPS = 1_000_000_000
_MAX_DIAGNOSED_WORDS = 120
_NEGATING_STARTS = ("un", "in", "im", "ir", "il", "non", "non-", "dis", "mis")
_NEGATING_ENDS = ("less", "n't", "free", "-free")


@dataclass(frozen=True, slots=True)
class QuoteResult:
    """The quotes of named evidence fields that a source contains, their citations, and the counts.

    `unchecked` is the number of quotes that were not looked up, which the counts leave out.
    """

    accepted: dict[str, list[str]]
    citations: dict[str, list[Citation]]
    counts: QuoteCounts
    unchecked: int = 0

    @property
    def all_rejected(self) -> bool:
        """Return whether quotes were looked up and no source contains any of them."""
        return self.counts.extracted > 0 and self.counts.validated == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the accepted quotes and the counts in the wire format."""
        return {
            "accepted": {name: list(quotes) for name, quotes in self.accepted.items()},
            "quotes": self.counts.to_dict(),
            "schema": {"violations": []},
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the accepted quotes and the counts in the wire format, as JSON text."""
        return to_json(self.to_dict(), indent)


def is_field_quote(claim: Claim) -> bool:
    """Return whether a claim is the text of an evidence field: a quotation and no statement of the answer."""
    return claim.kind == "quote" and claim.pointer is not None


def decides_alone(claim: Claim, policy: Policy) -> bool:
    """Return whether only the quotation verifier judges a claim."""
    return is_field_quote(claim) and policy.quotes.enabled and "quote" in policy.verifiers


def verify(claim: Claim, context: Context, policy: Policy) -> Verdict | None:
    """Return the verdict on a claim's quotations; None if it has none, or if quotations are not checked.

    A run of one or two words, a title ("The Great Gatsby") or a question may be a term, a name, irony or the user's
    question: if found, it counts as validated, otherwise it is ignored. A block quote is one quotation.
    """
    if not policy.quotes.enabled:
        return None
    texts = [block_text(claim.text)] if claim.kind == "quote" else [quote.text for quote in find_quotes(claim.text)]
    looked_up = [(text, _look_up(text, context, policy.quotes)) for text in texts]
    checked = [(text, found) for text, found in looked_up if found or claim.kind == "quote" or not is_term(text)]
    checked = [(text, found) for text, found in checked if found or words(text)]
    if not checked:
        return None
    citations = tuple(citation for _, found in checked for citation in found)
    rejected = [text for text, found in checked if not found]
    validated = len(checked) - len(rejected)
    if rejected:
        reason = f'The quotation "{_shorten(rejected[0])}" is not in any source{_difference(rejected[0], context)}.'
        return Verdict(
            "quote", "unsupported", 0.0, "exact", reason, citations, ("quote_not_found",), len(checked), validated
        )
    fuzzy = any(citation.match == "fuzzy" for citation in citations)
    score = min(citation.score for citation in citations)
    reason = f"{'The quotation appears' if validated == 1 else 'All quotations appear'} in the sources"
    reason += " but for small differences." if fuzzy else " word for word."
    return Verdict(
        "quote", "supported", score, "fuzzy" if fuzzy else "exact", reason, citations, (), validated, validated
    )


def check_quotes(
    quotes: Mapping[str, Sequence[str]],
    context: Context,
    policy: QuotePolicy,
    *,
    fail_on_all_rejected: bool = False,
    max_search: int | None = None,
) -> QuoteResult:
    """Look up the quotes of named evidence fields and keep those that a source contains, by field and in order.

    Quotes beyond a total of `max_search` estimated steps (see `_estimate_steps`) are not looked up. Raises
    EvidenceGroundingError if `fail_on_all_rejected` is set and quotes were looked up but no source contains any.
    """
    accepted: dict[str, list[str]] = {}
    citations: dict[str, list[Citation]] = {}
    rejected: dict[str, int] = {}
    size = sum(len(source.text) for source in context.sources)
    searched = checked = 0
    for field, texts in quotes.items():
        accepted[field], citations[field] = [], []
        for text in texts:
            searched += _estimate_steps(len(text), size, policy)
            if max_search is not None and searched > max_search:
                continue
            checked += 1
            if places := _look_up(text, context, policy):
                accepted[field].append(text)
                citations[field] += places
            else:
                rejected[field] = rejected.get(field, 0) + 1
    lost = sum(rejected.values())
    counts = QuoteCounts(checked, checked - lost, lost, tuple(rejected.items()))
    result = QuoteResult(accepted, citations, counts, sum(map(len, quotes.values())) - checked)
    if fail_on_all_rejected and result.all_rejected:
        raise EvidenceGroundingError(lost)
    return result


def _estimate_steps(quote: int, sources: int, policy: QuotePolicy) -> int:
    """Estimate the steps, of about a nanosecond each, of looking up `quote` characters in `sources` characters."""
    return quote + sources * (5 + (12 + quote if policy.fuzzy else 0))


def _look_up(text: str, context: Context, policy: QuotePolicy) -> tuple[Citation, ...]:
    """Return a citation for each segment of a quotation, all in one source; none if it is not found."""
    segments = _segments(text)
    if not segments:
        return ()
    for source in context.sources:
        if spans := _in_order(segments, context.folded(source)):
            return tuple(cite(source, start, end, 1.0, "exact") for start, end in spans)
    if not policy.fuzzy:
        return ()
    near = [_fuzzy(text, source, context, policy.fuzzy_threshold) for source in context.sources]
    return tuple(sorted(filter(None, near), key=lambda citation: -citation.score)[:1])


def _segments(text: str) -> list[str]:
    """Return the folded segments of a quotation between omissions and insertions, without outer punctuation."""
    joined = _LETTER_IN_BRACKETS.sub(r"\1", text)
    pieces: list[str] = []
    position = 0
    for match in _ELISION.finditer(joined):
        if not _adds_meaning(match.group()):
            pieces.append(joined[position : match.start()])
            position = match.end()
    pieces.append(joined[position:])
    folded = (fold(piece).text.strip(_STYLE) for piece in pieces)
    return [piece for piece in folded if piece]


def _adds_meaning(insertion: str) -> bool:
    """Return whether brackets in a quotation add a negation, or a number among other words."""
    inside = words(insertion)
    return any(word.is_negator for word in inside) or (len(inside) > 1 and any(word.is_number for word in inside))


def _in_order(segments: Sequence[str], folded: Folded) -> list[tuple[int, int]]:
    """Return the spans of the segments in the original, one after the other; none if one is missing."""
    spans: list[tuple[int, int]] = []
    position = 0
    for segment in segments:
        place = _find(segment, folded.text, position)
        if place is None or (spans and _elides_negation(folded.text[position:place])):
            return []
        position = place + len(segment)
        spans.append(folded.origin(place, position))
    return spans


def _find(segment: str, text: str, position: int) -> int | None:
    """Return the first place of `segment` where it cuts no word in a way that matters; inner marks may differ."""
    for needle in dict.fromkeys((segment, _INNER_MARK.sub('"', segment), segment.replace('"', "'"))):
        place = text.find(needle, position)
        tries = 0
        while place >= 0 and tries < 200:
            if not _cuts(needle, text, place):
                return place
            place = text.find(needle, place + 1)
            tries += 1
    return None


def _cuts(needle: str, text: str, place: int) -> bool:
    """Return whether a match cuts off part of a number, a negating affix or, if it is short, any part of a word."""
    end = place + len(needle)
    before, behind = _TAIL.search(text[max(0, place - 16) : place]), _HEAD.match(text[end : end + 16])
    head = before.group() if before and needle[0].isalnum() else ""
    head = "" if head.endswith("-") and head != "non-" else head
    tail = behind.group() if behind and needle[-1].isalnum() else ""
    if not head and not tail:
        return False
    if (head and needle[0].isdigit() and head[-1:] in "0123456789.,-") or (tail and needle[-1].isdigit()):
        return True
    short = len(words(needle)) < _SHORT_WORDS
    return short or head in _NEGATING_STARTS or tail.startswith(_NEGATING_ENDS)


_HEAD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+(?:['-](?:free|t)\b)?|['-](?:free|t)\b|[.,]\d")
_TAIL = re.compile(r"(?:[^\W\u3040-\u30ff\u3400-\u9fff]{1,16}-?|\d[.,])\Z")


def _elides_negation(gap: str) -> bool:
    left_out = words(gap)
    return 0 < len(left_out) <= 3 and any(word.is_negator for word in left_out)


def _fuzzy(text: str, source: Source, context: Context, threshold: float) -> Citation | None:
    """Return the best near match of a quotation in one source, unless a number, unit, negation or name differs."""
    require_extras(("quotes.mode: fuzzy", "fuzzy"))
    from rapidfuzz import fuzz  # 35 ms to import, for an option that is off by default

    needle, folded = fold(text).text.strip(_STYLE), context.folded(source)
    long_enough = len(needle) >= _MIN_FUZZY_CHARS and len(words(needle)) >= _MIN_FUZZY_WORDS
    if not long_enough or not len(needle) <= len(folded.text) <= _MAX_FUZZY_STEPS / len(needle):
        return None
    found = fuzz.partial_ratio_alignment(needle, folded.text, score_cutoff=100 * threshold)
    if found is None or found.dest_end <= found.dest_start:
        return None
    start, end = folded.origin(found.dest_start, found.dest_end)
    start, end = _whole_words(source.text, start, end)
    if any(map(_changes_meaning, changes(text, source.text[start:end]))):
        return None
    return cite(source, start, end, found.score / 100, "fuzzy")


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "$€£¥₹-"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] in "%°'’"):
        end += 1
    return start, end


def _difference(text: str, context: Context) -> str:
    """Describe the first difference between a quotation and a passage that nearly contains it; "" if none does."""
    quoted = words(text)
    if not 2 < len(quoted) <= _MAX_DIAGNOSED_WORDS:
        return ""
    for passage in context.nearest({word.stem for word in quoted if word.is_content}, 2):
        window = context.around(passage)
        near = passage.source.text[window[0].start : window[-1].end]
        if len(near) > 8 * len(text) + 400:
            continue
        differing = changes(text, near)
        if 0 < sum(max(len(change.quoted), len(change.found)) for change in differing) <= max(2, len(quoted) // 6):
            ours, theirs = (_quote_words(side) for side in (differing[0].quoted, differing[0].found))
            return f": the source has {theirs} where the quotation has {ours}"
    return ""


def _quote_words(side: Sequence[Word]) -> str:
    return f'"{" ".join(word.text for word in side)}"' if side else "nothing"


def _shorten(text: str, limit: int = 80) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


_MARKS = re.compile("[\"'“”„‟«»‹›「」『』‘’‚]")
_CLOSES = {marks[0]: marks[1:] for marks in "\"\" '' “” ”” „“”‟ ‟” «» »«» ‹› ›‹› 「」 『』 ‘’ ‚‘’".split()}
"""The marks that may close a quotation, by the mark that opens it."""
_SINGLE = "'‘‚"
_DIRECTED = "「『„«‹"
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_APHAERESIS = re.compile(r"\d|(?:tis|twas|em|til|cause|n|bout|round)\b", re.IGNORECASE)

_BLOCK_MARK = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_BLOCK = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_DASHES = "—–-"
_MAX_BYLINE_CHARS = 120
_MAX_TERM_WORDS = 2
_ASKS = re.compile(
    r"\s*(?:how (?:to|do|does|can|much|many)|wh(?:at|ere|en|y|o) (?:is|are|do|does|to))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation of an answer: the text between its marks, and the span of that text."""

    text: str
    start: int
    end: int


def find_quotes(text: str) -> tuple[Quote, ...]:
    """Return the outermost quotations of `text`, in order, in any of the usual marks, in linear time.

    A quotation stays within its paragraph. Unpaired marks, apostrophes and marks for feet or inches quote nothing.
    Single marks must be where a quotation can begin and end.
    """
    pairs: list[tuple[int, int]] = []
    for start, end in _paragraphs(text):
        pairs.extend(_pairs(text, start, end))
    quotes: list[Quote] = []
    reach = -1
    for opened, closed in sorted(pairs):
        if opened > reach and (inner := text[opened + 1 : closed]).strip():
            quotes.append(Quote(inner, opened + 1, closed))
            reach = closed
    return tuple(quotes)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _PARAGRAPH.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _pairs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of paired marks, matched with a stack. A mark left open inside a closed pair is dropped."""
    stack: list[int] = []
    open_marks: dict[str, int] = {}
    places = [match.start() for match in _MARKS.finditer(text, start, end)]
    for index, place in enumerate(places):
        following = places[index + 1] if index + 1 < len(places) else None
        opener = next((mark for mark, count in open_marks.items() if count and text[place] in _CLOSES[mark]), None)
        if opener and _can_close(text, place, following):
            while text[popped := stack.pop()] != opener:
                open_marks[text[popped]] -= 1
            open_marks[opener] -= 1
            yield popped, place
        elif _can_open(text, place):
            stack.append(place)
            open_marks[text[place]] = open_marks.get(text[place], 0) + 1


def _can_open(text: str, place: int) -> bool:
    mark, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if mark not in _CLOSES or not after or (after.isspace() and mark not in "«‹"):
        return False
    if mark in _DIRECTED:
        return True
    if before.isalnum() and (before.isascii() or mark in _SINGLE):
        return False
    return not (mark in _SINGLE and _APHAERESIS.match(text, place + 1))


def _can_close(text: str, place: int, following: int | None) -> bool:
    mark, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if mark in "」』»›«‹":
        return True
    if before.isspace() or (after.isalnum() and (after.isascii() or mark in "'’‘")):
        return False
    closes_later = following is not None and text[following] == mark and not text[following - 1].isspace()
    if mark == '"' and before.isdigit() and closes_later:
        return False  # 5'10" inside a quotation
    return not (mark in "'’" and before in "sS" and after == " " and closes_later)  # the dogs' bowls


def block_text(text: str) -> str:
    """Return the text of a block quote.

    Its marks, a last line with its author and enclosing quotation marks are removed.
    """
    unmarked = _BLOCK_MARK.sub("", text).strip()
    body, _, last = unmarked.rpartition("\n")
    if body and len(last) <= _MAX_BYLINE_CHARS and last.lstrip().startswith(tuple(_DASHES)):
        unmarked = body.rstrip()
    inner = find_quotes(unmarked)
    return inner[0].text if len(inner) == 1 and len(inner[0].text) >= len(unmarked) - 3 else unmarked


def quoted_texts(text: str) -> list[str]:
    """Return the quoted texts, in order: runs between quotation marks, and block quotes whole."""
    found: list[str] = []
    end = 0
    for block in _BLOCK.finditer(text):
        found += [quote.text for quote in find_quotes(text[end : block.start()])]
        found.append(block_text(block.group()))
        end = block.end()
    return [each for each in found + [quote.text for quote in find_quotes(text[end:])] if each.strip()]


def is_term(text: str) -> bool:
    """Return whether a quoted run is a term, a name, a title or a question rather than somebody's words."""
    found = words(text)
    if len(found) <= _MAX_TERM_WORDS:
        return True
    if text.rstrip()[-1:] == "?" or _ASKS.match(text):
        return True
    content = [word for word in found if word.stem not in STOPWORDS]
    titled = all(word.text[:1].isupper() or word.is_number for word in content)
    return titled and found[0].text[:1].isupper() and text.rstrip()[-1:] not in ".!;"


@dataclass(frozen=True, slots=True)
class Change:
    """Words of a quotation, and the words of the source in their place. `named` is set if either has a name."""

    quoted: tuple[Word, ...]
    found: tuple[Word, ...]
    named: bool


def changes(quoted: str, found: str) -> list[Change]:
    """Return the differences between a quotation and the text around its place in a source, word by word.

    Text of `found` before or after the quotation is no difference.
    """
    from difflib import SequenceMatcher

    one, other = Reading(quoted), Reading(found)
    matcher = SequenceMatcher(None, _comparable(one), _comparable(other), autojunk=False)
    differing: list[Change] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        if k == 0:
            k = max(k, m - (j - i))
        elif m == len(other.words):
            m = min(m, k + (j - i))
        if i < j or k < m:
            named = any(map(one.is_name, range(i, j))) or any(map(other.is_name, range(k, m)))
            differing.append(Change(tuple(one.words[i:j]), tuple(other.words[k:m]), named))
    return differing


def _comparable(reading: Reading) -> list[str]:
    """Return the words as they are compared: case-folded, and numbers with their sign or symbol."""
    compared: list[str] = []
    for word in reading.words:
        sign = reading.text[max(0, word.start - 1) : word.start] if word.is_number else ""
        unit = reading.text[word.end : word.end + 1] if word.is_number else ""
        compared.append((sign if sign in "$€£¥₹-" else "") + word.text.casefold() + (unit if unit in "%°" else ""))
    return compared


def _changes_meaning(change: Change) -> bool:
    """Return whether a difference changes the meaning: a number, unit, negation, name, date or opposite."""
    both = change.quoted + change.found
    if change.named or any(word.is_number or word.is_negator or word.stem in CALENDAR for word in both):
        return True
    if any(word.lower in UNIT_WORDS for word in both):
        return True
    if any(one.text[0].isupper() and other.text[0].isupper() for one in change.quoted for other in change.found):
        return True
    return any(are_opposed(one.stem, other.stem) for one in change.quoted for other in change.found)
