"""Split an answer into claims: Markdown blocks, then sentences, then clauses; or the fields of a JSON answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, tee, zip_longest
from typing import NamedTuple

from groundwire.claims.markdown import LEAD_LIMIT, Block, blocks, find_marks, labels_of, without
from groundwire.claims.stance import (
    PLAIN,
    Stance,
    is_lead_in,
    is_only_confidence,
    is_only_sources,
    is_question,
    named_confidence,
    stance,
)
from groundwire.domain import Claim, ClaimKind
from groundwire.policy import Policy
from groundwire.text.jsontext import Value, offsets_of, parse_object, scalars
from groundwire.text.sentences import clauses, halves, sentences
from groundwire.text.words import NUMERALS


class Draft(NamedTuple):
    """A claim without its id. If `text` is None, it is the answer's text in the span."""

    start: int
    end: int
    kind: ClaimKind
    lead: str = ""
    skip: str | None = None
    confidence: float = PLAIN
    cited: tuple[str, ...] = ()
    pointer: str | None = None
    text: str | None = None


_FENCE = re.compile(r"\s*```[ \t]*([A-Za-z]*)[ \t]*\r?\n")
_REASONING = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>|<!--[^<>]{0,300}-->")
_BREAKING_TAG = re.compile(r"</?(?:p|br|li|ul|ol|tr|div|h[1-6]|table|section|dd|dt|summary)[\s/>]", re.IGNORECASE)
_QUOTE_MARK = re.compile(r"\n[ \t]{0,12}(?:>[ \t]?)+")
_CONTENT = re.compile(r"[^\W_]")
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*\n]{1,80}(?:\*\*|__):?$")
_DIGIT = re.compile(r"\d")
_LOWER_LETTERS = re.compile(r"[a-z]+")
NUMBER_WORDS = frozenset(NUMERALS) - {"zero", "one"} | frozenset(
    "hundred thousand million billion trillion dozen half twice double triple percent".split()
)
_OPENING = re.compile(r"[\W_]*(?:(?:and|but|so|or|then)[ \t]+)?([\w'’]+)(?:[ \t]+([\w'’]+))?", re.IGNORECASE)
_INTRODUCTION = re.compile(r"[\W_]*(?:[\w'’-]+[ \t]+){0,7}?[\w'’-]+,[ \t]+")
_ANAPHORS = frozenset(
    "it its it's they their them they're he his him he's she her hers she's this that these those such both here "
    "there neither former latter one another others".split()
)
_GENERIC = frozenset(
    "company firm business corporation group organization organisation agency study research report author "
    "authors writer film movie book novel song album series show game team club player city town country state "
    "president minister court judge case law act bill agreement deal project program plan system product device "
    "drug treatment disease condition patient patients event incident attack man woman couple boy girl child "
    "victim suspect family school university bank fund region area species process method approach latter former "
    "two three first second same increase decrease change result results".split()
)
_SENTENCE_WORDS = 5
_REFERENCE_LENGTH = 240
_SOURCES_TITLE = re.compile(
    r"\W{0,4}(?:sources?|references?|citations?|bibliography|works cited|further reading)\W{0,4}$", re.IGNORECASE
)


def prose(text: str) -> Iterator[Draft]:
    """Yield the claims of an answer in Markdown, in order."""
    if opening := _REASONING.match(text):
        closing = f"</{opening[1]}>"
        found = text.find(closing, opening.end())
        end = len(text) if found < 0 else found + len(closing)
        yield Draft(opening.end(1) - len(opening[1]) - 1, end, "statement", skip="reasoning")
        text = " " * end + text[end:]
    else:
        text = unfenced(text, "markdown", "md") or text
    previous, in_sources = "", False
    current, later = tee(blocks(text))
    for block, following in zip_longest(current, islice(later, 1, None)):
        if block.kind in ("paragraph", "list_item", "quote", "html"):
            drafts = _sentences(text, block, previous)
        else:
            drafts = _whole(text, block)
        for draft in drafts:
            own = text[draft.start : draft.end]
            if draft.kind == "heading" or draft.skip == "citation_only":
                in_sources = _SOURCES_TITLE.match(own) is not None or (in_sources and draft.kind != "heading")
            elif in_sources and draft.skip is None and len(own) <= _REFERENCE_LENGTH:
                draft = draft._replace(skip="citation_only")
            elif following is not None and _only_leads(own, block, following):
                draft = draft._replace(skip="lead_in")
            previous = own[-LEAD_LIMIT:]
            yield draft


def _only_leads(own: str, block: Block, following: Block) -> bool:
    """Return whether a list item is only the title of the sublist under it."""
    return (
        block.kind == following.kind == "list_item"
        and len(following.lead) > len(block.lead)
        and following.lead.endswith(own)
        and own.count(" ") < _SENTENCE_WORDS
        and own[-1] not in ".!?"
    )


def _whole(text: str, block: Block) -> Iterator[Draft]:
    """Yield the one claim of a heading, a table row or a code block; none if it has no letter or digit."""
    own = text[block.start : block.end]
    if block.kind == "rule" or not _CONTENT.search(own):
        return
    marks = list(find_marks(own))
    whole = Draft(block.start, block.end, "heading", block.lead, "heading", PLAIN, labels_of(marks))
    if block.kind == "code":
        yield whole._replace(kind="code", skip="code", cited=())
    elif block.kind == "table_row":
        yield whole._replace(kind="table_row", skip=None)
    elif block.kind == "heading" and own.endswith(".") and own.count(" ") >= _SENTENCE_WORDS:
        reading = stance(own)  # a statement formatted as a heading, or above a line of dashes
        yield whole._replace(kind=_kind(without(marks, own)), skip=reading.skip, confidence=reading.confidence)
    else:
        yield whole


def _sentences(text: str, block: Block, previous: str) -> Iterator[Draft]:
    """Yield the claims of a block of running text, sentence by sentence; `previous` is the piece before the block."""
    reading = _reading(text[block.start : block.end], block)
    if not _CONTENT.search(reading):
        return
    if block.kind == "paragraph" and _is_title(reading):
        yield Draft(block.start, block.end, "heading", skip="heading")
        return
    for start, end in sentences(reading):
        sentence = reading[start:end]
        lead = previous if previous and _leans(sentence) else block.lead
        last = not _CONTENT.search(reading, end)
        for draft in _parts(sentence, lead, last):
            if block.quoted and sentence[0] in "—–-":  # the attribution of a quotation
                draft = draft._replace(skip="citation_only")
            relays = block.kind == "list_item" or block.quoted or draft.cited or draft.kind == "numeric"
            if draft.skip == "instruction" and relays:
                draft = draft._replace(skip=None)  # it reports how something is done: "Take two tablets a day"
            kind: ClaimKind = "quote" if block.quoted else draft.kind
            yield draft._replace(
                start=draft.start + block.start + start, end=draft.end + block.start + start, kind=kind
            )
        previous = sentence[-LEAD_LIMIT:]


def _is_title(line: str) -> bool:
    """Return whether a paragraph is a single line in bold without a full stop at its end: in effect a heading."""
    return len(line) <= 90 and _BOLD_LINE.match(line) is not None and line.strip("*_:")[-1:] not in ".!?"


def _reading(own: str, block: Block) -> str:
    """Return the text of a block, offsets unchanged, with HTML tags and quote markers replaced by white space."""
    if block.quoted and "\n" in own:
        own = own.replace("\n> ", "\n  ")
        if ">" in own:
            own = _QUOTE_MARK.sub(lambda mark: "\n" + " " * (len(mark.group()) - 1), own)
    if "<" in own:
        own = _TAG.sub(_blank_tag, own)
    return own


def _blank_tag(tag: re.Match[str]) -> str:
    width = len(tag.group())
    return f"  {'':{width - 3}}\n"[-width:] if width > 2 and _BREAKING_TAG.match(tag.group()) else " " * width


def _parts(sentence: str, lead: str, last: bool) -> Iterator[Draft]:
    """Yield the claims of one sentence: itself, or its clauses. Offsets are relative to the sentence."""
    marks = list(find_marks(sentence))
    bare = without(marks, sentence)
    labels = labels_of(marks)
    if skip := _whole_skip(sentence, bare, last):
        confidence = stance(sentence).confidence if skip == "confidence" else PLAIN
        yield Draft(0, len(sentence), "statement", lead, skip, confidence, labels)
        return
    parts = _clauses(sentence)
    first = sentence[: parts[0][1]][-LEAD_LIMIT:]
    for start, end, reading in parts:
        if len(parts) > 1:  # a citation covers everything before it in its sentence
            later = [mark for mark in marks if mark.start >= start]
            labels = labels_of(mark for mark in later if mark.start < end) or labels_of(later[:1])
        lean = lead if start == 0 else first
        yield Draft(start, end, _kind(bare[start:end]), lean, reading.skip, reading.confidence, labels)


def _clauses(sentence: str) -> list[tuple[int, int, Stance]]:
    """Return the clauses; an assertion is also split from a refusal, an opinion or a missing answer."""
    read = [(start, end, stance(sentence[start:end])) for start, end in clauses(sentence)]
    if len(read) == 1 and (whole := read[0][2].skip) in ("not_in_context", "refusal", "opinion"):
        for both in halves(sentence):
            parted = [(start, end, stance(sentence[start:end])) for start, end in both]
            skips = [part[2].skip for part in parted]
            if whole in skips and None in skips:
                return parted
    return read


def _whole_skip(sentence: str, bare: str, last: bool) -> str | None:
    """Return the reason to skip a sentence as a whole, if any."""
    if is_question(sentence):
        return "question"
    if is_only_confidence(sentence):
        return "confidence"
    if last and is_lead_in(sentence):
        return "lead_in"
    return "citation_only" if is_only_sources(sentence, bare) else None


def _kind(bare: str) -> ClaimKind:
    """Return the kind of a text without citation marks: numeric if it has a digit or a number word, else statement."""
    return (
        "numeric"
        if _DIGIT.search(bare) or not NUMBER_WORDS.isdisjoint(_LOWER_LETTERS.findall(bare.lower()))
        else "statement"
    )


def _leans(sentence: str) -> bool:
    """Return whether a sentence opens with an anaphor, a word that refers to earlier text."""
    introduction = _INTRODUCTION.match(sentence)
    for place in (0, introduction.end()) if introduction else (0,):
        if opening := _OPENING.match(sentence, place):
            first, second = ((word or "").lower().replace("’", "'") for word in opening.groups())
            if first in _ANAPHORS or (first == "the" and second.removesuffix("'s") in _GENERIC):
                return True
    return False


def unfenced(text: str, *languages: str) -> str | None:
    """Return `text` with a fence around all of it replaced by spaces; None without such a fence of these languages."""
    fence, end = _FENCE.match(text), text.rstrip()
    if fence is None or fence[1].lower() not in languages:
        return None
    if not end.endswith("```") or text.find("```", fence.end()) != len(end) - 3:
        return None
    return " " * (fence.end() - 1) + "\n" + text[fence.end() : len(end) - 3]


_LABEL_KEYS = frozenset(
    "id type status role format kind version schema $schema language lang success error uuid".split()
)
_VALUE_WORDS = 5


def json_of(text: str) -> str | None:
    """Return the JSON text if the whole answer is one, with a fence around it replaced by spaces; else None."""
    inside = unfenced(text, "", "json") or text
    return None if parse_object(inside) is None else inside


def fields(text: str) -> Iterator[Draft]:
    """Yield the claims of a JSON answer: the sentences of its strings; its numbers and truth values as "key: value".

    Fields with ids, types and the like are skipped as headings, stated confidences as confidences. Nulls are left out.
    """
    root = parse_object(text)
    for value in scalars(text):
        if value.value is None:
            continue
        holder = _holder(root, value)
        key = next((step for step in reversed(value.path) if isinstance(step, str)), "")
        if key.lower() in _LABEL_KEYS:
            yield Draft(value.start, value.end, "field", "", "heading", pointer=value.pointer, text=str(value.value))
        elif (stated := named_confidence(key, value.value)) is not None:
            yield Draft(
                value.start, value.end, "field", "", "confidence", stated, (), value.pointer, f"{key}: {value.value}"
            )
        elif isinstance(value.value, str):
            yield from _string(text, value, key, holder)
        else:
            written = f"{key}: {text[value.start : value.end]}" if key else text[value.start : value.end]
            lead, confidence = _record(holder, key), _stated(holder)
            yield Draft(value.start, value.end, "field", lead, None, confidence, (), value.pointer, written)


def _string(text: str, value: Value, key: str, holder: object) -> Iterator[Draft]:
    own = str(value.value)
    places = offsets_of(text, value.start, value.end)
    stated = _stated(holder)
    is_value = own.count(" ") < _VALUE_WORDS and not own.rstrip().endswith((".", "!", "?"))
    for draft in prose(own):
        start, end = (
            (places[draft.start], places[draft.end]) if places else (value.start + draft.start, value.start + draft.end)
        )
        draft = draft._replace(start=start, end=end, pointer=value.pointer, text=own[draft.start : draft.end])
        if stated != PLAIN and draft.confidence == PLAIN:
            draft = draft._replace(confidence=stated)
        if is_value:
            lead = " ".join(filter(None, (_record(holder, key), key)))[:LEAD_LIMIT]
            draft = draft._replace(
                kind="field", lead=lead, skip=None if draft.skip in ("heading", "lead_in") else draft.skip
            )
        yield draft


def _holder(root: object, value: Value) -> object:
    """Return the object or array that contains `value`."""
    for step in value.path[:-1]:
        if isinstance(root, dict) and isinstance(step, str):
            root = root.get(step)
        elif isinstance(root, list) and isinstance(step, int) and step < len(root):
            root = root[step]
    return root


def _record(holder: object, key: str) -> str:
    """Return a text that names the record of a field: the first field of its object, if that is a short string."""
    if not isinstance(holder, dict) or not holder:
        return ""
    name, first = next(iter(holder.items()))
    return f"{name}: {first}"[:LEAD_LIMIT] if isinstance(first, str) and name != key and len(first) <= 120 else ""


def _stated(holder: object) -> float:
    """Return the confidence that an object states for itself, in a field with such a key."""
    if isinstance(holder, dict):
        for key, value in islice(holder.items(), 40):
            if (stated := named_confidence(key, value)) is not None:
                return stated
    return PLAIN


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one answer, in order, with disjoint spans.

    `total` includes the claims beyond the limit; in texts longer than `_MAX_COUNTED` those are estimated by line and
    sentence ends. `truncated` is set if there are any. `examined` is the share (0–1) of the answer's characters, except
    white space, that was read.
    """

    claims: tuple[Claim, ...]
    total: int
    truncated: bool
    examined: float


_MAX_COUNTED = 2**18
_MAX_CACHED = 2**14  # in characters; the claims of longer answers are not cached
_LETTERS = re.compile(r"[^\W\d_]+")
_FILLERS = NUMBER_WORDS | frozenset(
    "the a an answer it is was would be will about approximately around roughly nearly one total of to and in cents "
    "dollars dollar usd euros euro eur gbp pounds million millions thousands billions percentage points point years "
    "year months days times x k m bn".split()
)
_END = re.compile(r"[^\W_][^\w\s]*(?:\n|[.!?][^\w\s]*(?=\s|$)|$)")


def find_claims(text: str, policy: Policy, question: str = "") -> Claims:
    """Return at most `policy.max_claims` claims of the answer `text`; those that assert nothing have a skip reason.

    A JSON answer, fenced or not, gives the claims of its fields. A claim that is a bare number has the `question` as
    its lead, as its subject is named only there. Accepts any Unicode; linear in the length.
    """
    find = _find_recent if len(text) + len(question) <= _MAX_CACHED else _find
    return find(text, policy.max_claims, policy.verify_hedged, question)


def _find(text: str, max_claims: int, verify_hedged: bool, question: str) -> Claims:
    json_text = json_of(text)
    drafts = _joined_confidence(prose(text) if json_text is None else fields(json_text))
    taken = list(islice(drafts, max_claims))
    claims = tuple(_claim(number, draft, text, verify_hedged, question) for number, draft in enumerate(taken, 1))
    if next(drafts, None) is None:
        return Claims(claims, len(claims), False, 1.0)
    read = taken[-1].end if taken else 0
    rest = 1 + sum(1 for _ in drafts) if len(text) <= _MAX_COUNTED else sum(1 for _ in _END.finditer(text, read))
    examined, letters = (sum(map(len, each.split())) for each in (text[:read], text))
    return Claims(claims, len(claims) + max(1, rest), True, examined / max(1, letters))


_find_recent = lru_cache(maxsize=64)(_find)


def _claim(number: int, draft: Draft, text: str, verify_hedged: bool, question: str) -> Claim:
    skip = None if verify_hedged and draft.skip == "hedged" else draft.skip
    own = text[draft.start : draft.end] if draft.text is None else draft.text
    return Claim(
        id=f"c{number}",
        text=own,
        start=draft.start,
        end=draft.end,
        kind=draft.kind,
        lead=draft.lead or (question[-LEAD_LIMIT:] if draft.kind == "numeric" and is_bare_number(own) else ""),
        cited=draft.cited,
        stated_confidence=draft.confidence,
        skip_reason=skip,
        pointer=draft.pointer,
    )


def is_bare_number(text: str) -> bool:
    """Return whether a text has no words but number words, units and fillers, so that its subject is not named."""
    return all(word[0] in _FILLERS for word in _LETTERS.finditer(text.lower()))


def _joined_confidence(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Move a separate statement of confidence ("Confidence: 80%") to the piece before it."""
    waiting: Draft | None = None
    for draft in drafts:
        if draft.skip == "confidence" and draft.pointer is None and waiting is not None:
            waiting = waiting._replace(confidence=draft.confidence)
        if waiting is not None:
            yield waiting
        waiting = draft
    if waiting is not None:
        yield waiting
