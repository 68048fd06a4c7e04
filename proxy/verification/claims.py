"""An answer cut into claims: Markdown blocks, then sentences, then clauses; or the fields of a JSON answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from proxy.types import Claim, ClaimKind, Policy
from proxy.verification.assertions import Stance, is_lead_in, is_only_sources, is_question, stance
from proxy.verification.blocks import LEAD_LIMIT, Block, blocks
from proxy.verification.certainty import PLAIN, is_only_confidence, named_confidence
from proxy.verification.cited import cited, find_marks, labels_of, without
from proxy.verification.clauses import clauses, halves
from proxy.verification.jsontext import Value, offsets_of, parse_object, scalars
from proxy.verification.sentences import sentences


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one answer, in order, their spans disjoint.

    `total` counts those beyond the cap too, by line and sentence ends only. `truncated` says that the cap cut some off;
    `examined` (0–1) is the share of the answer's characters, white space aside, that was read.
    """

    claims: tuple[Claim, ...]
    total: int
    truncated: bool
    examined: float


class _Draft(NamedTuple):
    """A claim before it has its number. `text` None: the answer's own text at the span."""

    start: int
    end: int
    kind: ClaimKind
    lead: str = ""
    skip: str | None = None
    confidence: float = PLAIN
    cited: tuple[str, ...] = ()
    pointer: str | None = None
    text: str | None = None


_REASONING = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_OPEN_FENCE = re.compile(r"\s*```[ \t]*(json|markdown|md)?[ \t]*\r?\n", re.IGNORECASE)
_CLOSE_FENCE = re.compile(r"```\s*$")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>|<!--[^<>]{0,300}-->")
_BREAKING_TAG = re.compile(r"</?(?:p|br|li|ul|ol|tr|div|h[1-6]|table|section|dd|dt|summary)[\s/>]", re.IGNORECASE)
_QUOTE_MARK = re.compile(r"\n[ \t]{0,12}(?:>[ \t]?)+")
_CONTENT = re.compile(r"[^\W_]")
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*\n]{1,80}(?:\*\*|__):?$")
_END = re.compile(r"[^\W_][^\w\s]*(?:\n|[.!?][^\w\s]*(?=\s|$)|$)")
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[a-z]+")
_NUMBER_WORDS = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion "
    "trillion dozen half twice double triple percent".split()
)
_OPENING = re.compile(
    r"[\W_]*((?:[\w'’-]+[ \t]+){0,7}?[\w'’-]+,[ \t]+)?(?:(?:and|but|so|or|then)[ \t]+)?([\w'’]+)(?:[ \t]+([\w'’]+))?"
)
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
_LABEL_KEYS = frozenset(
    "id type status role format kind version schema $schema language lang success error uuid".split()
)
_SENTENCE_WORDS = 5


def find_claims(text: str, policy: Policy) -> Claims:
    """The claims of the answer `text`, at most `policy.max_claims` of them; those that assert nothing say why (CL2).

    A JSON answer, fenced or not, gives the claims of its fields. Any Unicode is accepted; linear in the length.
    """
    json_text = _json_of(text)
    drafts = _joined_confidence(_prose(text) if json_text is None else _fields(json_text))
    taken = list(islice(drafts, policy.max_claims))
    claims = tuple(_claim(number, draft, text, policy) for number, draft in enumerate(taken, 1))
    if next(drafts, None) is None:
        return Claims(claims, len(claims), False, 1.0)
    read = taken[-1].end if taken else 0
    rest = max(1, sum(1 for _ in _END.finditer(text, read)))
    return Claims(claims, len(claims) + rest, True, _share(text[:read], text))


def _claim(number: int, draft: _Draft, text: str, policy: Policy) -> Claim:
    skip = None if policy.verify_hedged and draft.skip == "hedged" else draft.skip
    own = text[draft.start : draft.end] if draft.text is None else draft.text
    return Claim(
        id=f"c{number}",
        text=own,
        start=draft.start,
        end=draft.end,
        kind=draft.kind,
        lead=draft.lead,
        cited=draft.cited,
        stated_confidence=draft.confidence,
        skip_reason=skip,
        pointer=draft.pointer,
    )


def _share(part: str, whole: str) -> float:
    return sum(map(len, part.split())) / max(1, sum(map(len, whole.split())))


def _joined_confidence(drafts: Iterator[_Draft]) -> Iterator[_Draft]:
    """Hands a confidence that stands alone ("Confidence: 80%") to the piece before it."""
    waiting: _Draft | None = None
    for draft in drafts:
        if draft.skip == "confidence" and draft.pointer is None and waiting is not None:
            waiting = waiting._replace(confidence=draft.confidence)
        if waiting is not None:
            yield waiting
        waiting = draft
    if waiting is not None:
        yield waiting


# Prose


def _prose(text: str) -> Iterator[_Draft]:
    """The pieces of an answer in Markdown, in order."""
    if opening := _REASONING.match(text):
        closing = f"</{opening[1]}>"
        found = text.find(closing, opening.end())
        end = len(text) if found < 0 else found + len(closing)
        yield _Draft(opening.end(1) - len(opening[1]) - 1, end, "statement", skip="reasoning")
        text = " " * end + text[end:]
    elif (fence := _OPEN_FENCE.match(text)) and fence[1] and (inside := _unfenced(text, fence)) is not None:
        text = inside
    previous = ""
    for block in blocks(text):
        if block.kind in ("paragraph", "list_item", "quote", "html"):
            for draft in _sentences(text, block, previous):
                previous = text[draft.start : draft.end][-LEAD_LIMIT:]
                yield draft
        elif whole := _whole(text, block):
            yield whole


def _whole(text: str, block: Block) -> _Draft | None:
    """A block that is one piece: code, a heading, a row of a table. None when it says nothing."""
    own = text[block.start : block.end]
    if block.kind == "rule" or not _CONTENT.search(own):
        return None
    if block.kind == "code":
        return _Draft(block.start, block.end, "code", skip="code")
    if block.kind == "table_row":
        return _Draft(block.start, block.end, "table_row", block.lead, None, PLAIN, cited(own))
    if block.kind == "heading" and own.endswith(".") and own.count(" ") >= _SENTENCE_WORDS:
        reading = stance(own)  # a statement set as a heading, or above a line of dashes
        return _Draft(
            block.start,
            block.end,
            _kind(without(find_marks(own), own)),
            "",
            reading.skip,
            reading.confidence,
            cited(own),
        )
    return _Draft(block.start, block.end, "heading", skip="heading")


def _sentences(text: str, block: Block, previous: str) -> Iterator[_Draft]:
    reading = _reading(text[block.start : block.end], block)
    if (
        block.kind == "paragraph"
        and len(reading) <= 90
        and _BOLD_LINE.match(reading)
        and reading.strip("*_:")[-1:] not in ".!?"
    ):
        yield _Draft(block.start, block.end, "heading", skip="heading")
        return
    for start, end in sentences(reading):
        sentence = reading[start:end]
        lead = previous if previous and _leans(sentence) else block.lead
        last = not _CONTENT.search(reading, end)
        for draft in _parts(sentence, lead, last):
            if draft.skip == "instruction" and (block.kind == "list_item" or draft.cited):
                draft = draft._replace(skip=None)
            kind: ClaimKind = "quote" if block.quoted else draft.kind
            yield draft._replace(
                start=draft.start + block.start + start, end=draft.end + block.start + start, kind=kind
            )
        previous = sentence[-LEAD_LIMIT:]


def _reading(own: str, block: Block) -> str:
    """The text of a block as it is read: markers of a block quote and HTML tags blanked out, every place kept."""
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


def _parts(sentence: str, lead: str, last: bool) -> Iterator[_Draft]:
    """The claims of one sentence: itself, or its clauses; places count from the sentence's start."""
    marks = list(find_marks(sentence))
    bare = without(marks, sentence)
    labels = labels_of(marks)
    if skip := _whole_skip(sentence, bare, last):
        confidence = stance(sentence).confidence if skip == "confidence" else PLAIN
        yield _Draft(0, len(sentence), "statement", lead, skip, confidence, labels)
        return
    parts = _clauses(sentence)
    first = sentence[: parts[0][1]][-LEAD_LIMIT:]
    for start, end, reading in parts:
        if len(parts) > 1:  # a citation stands for all that precedes it in its sentence
            later = [mark for mark in marks if mark.start >= start]
            labels = labels_of(mark for mark in later if mark.start < end) or labels_of(later[:1])
        lean = lead if start == 0 else first
        yield _Draft(start, end, _kind(bare[start:end]), lean, reading.skip, reading.confidence, labels)


def _clauses(sentence: str) -> list[tuple[int, int, Stance]]:
    """The clauses; a half that asserts is also parted from one that only says what the answer cannot tell."""
    read = [(start, end, stance(sentence[start:end])) for start, end in clauses(sentence)]
    if len(read) == 1 and (whole := read[0][2].skip) in ("not_in_context", "refusal"):
        for both in halves(sentence):
            parted = [(start, end, stance(sentence[start:end])) for start, end in both]
            skips = [part[2].skip for part in parted]
            if whole in skips and None in skips:
                return parted
    return read


def _whole_skip(sentence: str, bare: str, last: bool) -> str | None:
    """Why no part of a sentence is checked, when that shows in the sentence as a whole."""
    if is_question(sentence):
        return "question"
    if is_only_confidence(sentence):
        return "confidence"
    if last and is_lead_in(sentence):
        return "lead_in"
    return "citation_only" if is_only_sources(sentence, bare) else None


def _kind(bare: str) -> ClaimKind:
    """What a text without its citation marks is: numeric when it holds a digit or a number word."""
    return (
        "numeric"
        if _DIGIT.search(bare) or not _NUMBER_WORDS.isdisjoint(_LETTERS.findall(bare.lower()))
        else "statement"
    )


def _leans(sentence: str) -> bool:
    """Whether a sentence opens with a word that stands for something said before it (CL4)."""
    opening = _OPENING.match(sentence[:160])
    if not opening:
        return False
    first, second = opening[2].lower().replace("’", "'"), (opening[3] or "").lower()
    return first in _ANAPHORS or (first == "the" and second in _GENERIC)


# JSON


def _json_of(text: str) -> str | None:
    """The JSON text that the whole answer is, every place kept and a fence around it blanked out; or None."""
    if fence := _OPEN_FENCE.match(text):
        inside = _unfenced(text, fence)
        return inside if inside is not None and parse_object(inside) is not None else None
    return text if parse_object(text) is not None else None


def _unfenced(text: str, fence: re.Match[str]) -> str | None:
    """`text` with the fence around all of it blanked out; None when the fence does not reach its end."""
    end = text.rstrip()
    if not end.endswith("```") or text.find("```", fence.end()) != len(end) - 3:
        return None
    return " " * (fence.end() - 1) + "\n" + text[fence.end() : len(end) - 3]


def _fields(text: str) -> Iterator[_Draft]:
    """The pieces of a JSON answer: the sentences of its strings, and its numbers and truth values as "key: value"."""
    root = parse_object(text)
    for value in scalars(text):
        if value.value is None:
            continue
        holder = _holder(root, value)
        key = next((step for step in reversed(value.path) if isinstance(step, str)), "")
        if key.lower() in _LABEL_KEYS:
            yield _Draft(value.start, value.end, "field", "", "heading", pointer=value.pointer, text=str(value.value))
        elif (stated := named_confidence(key, value.value)) is not None:
            yield _Draft(
                value.start, value.end, "field", "", "confidence", stated, (), value.pointer, f"{key}: {value.value}"
            )
        elif isinstance(value.value, str):
            yield from _string(text, value, key, holder)
        else:
            written = f"{key}: {text[value.start : value.end]}" if key else text[value.start : value.end]
            lead, confidence = _record(holder, key), _stated(holder)
            yield _Draft(value.start, value.end, "field", lead, None, confidence, (), value.pointer, written)


def _string(text: str, value: Value, key: str, holder: object) -> Iterator[_Draft]:
    own = str(value.value)
    places = offsets_of(text, value.start, value.end)
    stated = _stated(holder)
    is_value = own.count(" ") < _SENTENCE_WORDS and not own.rstrip().endswith((".", "!", "?"))
    for draft in _prose(own):
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
    """The object or array that holds `value`."""
    for step in value.path[:-1]:
        if isinstance(root, dict) and isinstance(step, str):
            root = root.get(step)
        elif isinstance(root, list) and isinstance(step, int) and step < len(root):
            root = root[step]
    return root


def _record(holder: object, key: str) -> str:
    """What names the record that a field belongs to: the first field of its object when that is a string."""
    if not isinstance(holder, dict) or not holder:
        return ""
    name, first = next(iter(holder.items()))
    return f"{name}: {first}"[:LEAD_LIMIT] if isinstance(first, str) and name != key and len(first) <= 120 else ""


def _stated(holder: object) -> float:
    """The confidence that an object states of itself in a field of that name."""
    if isinstance(holder, dict):
        for key, value in islice(holder.items(), 40):
            if (stated := named_confidence(key, value)) is not None:
                return stated
    return PLAIN
