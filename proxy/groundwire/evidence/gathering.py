"""Collect the evidence in an exchange: explicit sources, tool results, documents and statements in messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from groundwire.caches import memo
from groundwire.domain import Exchange, Message, Part, Source, SourceKind
from groundwire.evidence.index import MAX_CHARS
from groundwire.evidence.passages import Piece, cut
from groundwire.evidence.requests import is_cue, is_question, is_request
from groundwire.evidence.templates import Block, take_apart

MAX_COST = MAX_CHARS
_LINE_COST = 80
_LONGEST_KEPT = 2**18  # in characters; the blocks of longer texts are not cached


def gather(exchange: Exchange) -> tuple[Source, ...]:
    """Return every source of an exchange: the explicit ones, then those in its messages, in order.

    Tool results and documents are sources as a whole; system and user messages are, without their questions and
    instructions; earlier assistant turns never are. Ids are unique: given ones are kept, others name the place ("m3",
    "m3.d2", "m3.p1"). For each source, `text == original[offset:offset + len(text)]`. A database is a source even if it
    returned no values. Messages beyond the limit of a context (`MAX_COST`) are not parsed but included as they are.
    """
    found = [*map(_named, range(1, len(exchange.sources) + 1), exchange.sources)]
    room = MAX_COST - sum(map(_cost, (source.text for source in exchange.sources)))
    for message in exchange.messages:
        if message.role != "assistant":
            cost = sum(_cost(part.text) for part in message.parts)
            found += _numbered(message.index, _of_message(message) if cost <= room else _as_it_is(message))
            room -= cost
    return tuple(_unique(source for source in found if source.text.strip() or source.kind == "facts"))


def _cost(text: str) -> int:
    """Return the cost of reading a text, in characters of prose: a line or a tag costs as much as a sentence."""
    return len(text) + _LINE_COST * (text.count("\n") + text.count("<"))


def _as_it_is(message: Message) -> Iterator[Source]:
    return (_whole(message, index, part) for index, part in enumerate(message.parts))


def _whole(message: Message, index: int, part: Part) -> Source:
    """Return a part of a message as one source with the names that the part has."""
    labels = tuple(filter(None, (part.id, part.title)))
    return Source(
        part.id or "",
        _kind(message, part),
        part.text,
        message.index,
        index,
        title=part.title,
        labels=labels,
        label=next(iter(labels), None),
        url=part.url,
    )


def _kind(message: Message, part: Part) -> SourceKind:
    if part.kind == "document":
        return "document"
    if part.kind == "tool_result" or message.role == "tool":
        return "tool"
    return "system" if message.role == "system" else "user"


def question(exchange: Exchange) -> str:
    """Return the question of the last user message, "" if there is none.

    It is the labelled question of a template, else the last question, else the last request, else the last sentence.
    """
    for message in reversed(exchange.messages):
        if message.role == "user":
            return next((asked for part in reversed(message.parts) if (asked := _asked(part))), "")
    return ""


def _asked(part: Part) -> str:
    if part.kind != "text":
        return ""
    blocks = _blocks(part.text)
    for block in reversed(blocks):
        if block.kind == "question":
            return part.text[block.start : block.end]
    sentences = [piece.text for block in blocks if block.kind == "prose" for piece in _pieces(part.text, block)]
    for wanted in (is_question, is_request):
        if chosen := [sentence for sentence in sentences if wanted(sentence) and not is_cue(sentence)]:
            return chosen[-1]
    return sentences[-1] if sentences else ""


def _named(position: int, source: Source) -> Source:
    """Return an explicit source with the labels that an answer may cite: its labels, title and position."""
    labels = dict.fromkeys(filter(None, (*source.labels, source.title, str(position))))
    return replace(source, labels=tuple(labels))


def _of_message(message: Message) -> Iterator[Source]:
    for index, part in enumerate(message.parts):
        whole = _whole(message, index, part)
        if whole.kind == "document":
            yield whole
        elif whole.kind == "tool":
            yield from _of_tool(whole)
        else:
            yield from _of_prompt(whole)


def _of_tool(whole: Source) -> Iterator[Source]:
    """Yield a tool result whole or, if it has at least two labelled documents, in pieces without gaps."""
    documents = [block for block in take_apart(whole.text) if block.kind == "document" and block.labels]
    if len(documents) < 2:
        yield whole
        return
    position = 0
    for block in [*documents, Block(len(whole.text), len(whole.text), "document")]:
        if any(map(str.isalnum, whole.text[position : block.start])):
            yield _slice(whole, position, block.start)
        if block.end > block.start:
            yield _of_block(replace(whole, id="", title=None), block)
        position = block.end


def _of_prompt(whole: Source) -> Iterator[Source]:
    """Yield the sources in a system or user message: its documents, and those runs of prose that state something."""
    for block in _blocks(whole.text):
        if block.kind == "document":
            yield replace(_of_block(whole, block), kind="document")
        elif block.kind == "prose":
            for start, end in _statements(whole.text, block):
                yield _slice(whole, start, end)


def _of_block(whole: Source, block: Block) -> Source:
    """Return a document in a message as a source, with the names that the message gives it."""
    found = _slice(whole, block.start, block.end)
    return replace(
        found, title=block.title or whole.title, labels=block.labels, label=block.label, url=block.url or whole.url
    )


def _blocks(text: str) -> tuple[Block, ...]:
    """Parse a text into blocks, cached: both the evidence and the question are read from them."""
    return _lately(text) if len(text) <= _LONGEST_KEPT else tuple(take_apart(text))


@memo(32, 4096, long_entries=4)
def _lately(text: str) -> tuple[Block, ...]:
    return tuple(take_apart(text))


def _slice(whole: Source, start: int, end: int) -> Source:
    return replace(whole, text=whole.text[start:end], offset=whole.offset + start)


def _statements(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the spans of consecutive sentences in a prose block that neither ask nor instruct."""
    start = end = -1
    for piece in _pieces(text, block):
        if is_request(piece.text):
            if start >= 0:
                yield start, end
            start = -1
        else:
            start, end = (piece.start, piece.end) if start < 0 else (start, piece.end)
    if start >= 0:
        yield start, end


def _pieces(text: str, block: Block) -> Iterator[Piece]:
    for piece in cut(text[block.start : block.end]):
        yield piece._replace(start=block.start + piece.start, end=block.start + piece.end)


def _numbered(index: int, sources: Iterator[Source]) -> Iterator[Source]:
    """Give ids to the sources of message `index`: "m3.d2" to its documents, "m3" or "m3.p1" to the others."""
    found = list(sources)
    loose = sum(not source.id and source.kind != "document" for source in found)
    counts = {"d": 0, "p": 0}
    for source in found:
        if source.id:
            yield source
            continue
        letter = "d" if source.kind == "document" else "p"
        counts[letter] += 1
        alone = letter == "p" and loose == 1
        yield replace(source, id=f"m{index}" if alone else f"m{index}.{letter}{counts[letter]}")


def _unique(sources: Iterator[Source]) -> Iterator[Source]:
    """Yield the sources with a number added to each id that is already taken."""
    taken: set[str] = set()
    copies: dict[str, int] = {}
    for source in sources:
        name = source.id or "s"
        while name in taken:
            copies[source.id] = copies.get(source.id, 1) + 1
            name = f"{source.id or 's'}#{copies[source.id]}"
        taken.add(name)
        yield source if name == source.id else replace(source, id=name)
