"""Gathers the evidence of an exchange: what it says about the world, from wherever it says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proxy.memo import memo
from proxy.types import Exchange, Message, Part, Source, SourceKind
from proxy.verification.context.index import MAX_CHARS
from proxy.verification.context.passages import Piece, cut
from proxy.verification.context.requests import is_cue, is_question, is_request
from proxy.verification.context.templates import Block, take_apart

MAX_COST = MAX_CHARS
_LINE_COST = 80
_LONGEST_KEPT = 2**18  # characters of a text whose parts are remembered for a while


def gather(exchange: Exchange) -> tuple[Source, ...]:
    """Every source of an exchange: the explicit ones, then what its messages hold, in order.

    Tool results and documents are evidence whole; system and user messages without their questions and instructions;
    earlier assistant turns never. Ids are unique: those given are kept, others name the place ("m3", "m3.d2", "m3.p1").
    Of each source `text == original[offset:offset + len(text)]`. A database is a source also when it gave no values.
    Beyond what a context reads, text is not taken apart.
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
    """Return what reading a text takes, in characters of prose: a line or a tag costs as much as a sentence."""
    return len(text) + _LINE_COST * (text.count("\n") + text.count("<"))


def _as_it_is(message: Message) -> Iterator[Source]:
    kind: SourceKind = message.role if message.role in ("system", "user", "tool") else "document"
    for index, part in enumerate(message.parts):
        yield Source(part.id or "", kind, part.text, message.index, index, title=part.title)


def question(exchange: Exchange) -> str:
    """What was asked last: the labelled question of a template, else the last question, else the last request."""
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
    """An explicit source with the labels that an answer may cite it by: its own, its title, its position."""
    labels = dict.fromkeys(filter(None, (*source.labels, source.title, str(position))))
    return replace(source, labels=tuple(labels))


def _of_message(message: Message) -> Iterator[Source]:
    for index, part in enumerate(message.parts):
        whole = Source(part.id or "", "document", part.text, message.index, index, title=part.title)
        labels = tuple(filter(None, (part.id, part.title)))
        whole = replace(whole, labels=labels, label=next(iter(labels), None), url=part.url)
        if part.kind == "document":
            yield whole
        elif part.kind == "tool_result" or message.role == "tool":
            yield from _of_tool(replace(whole, kind="tool"))
        else:
            yield from _of_prompt(whole, "system" if message.role == "system" else "user")


def _of_tool(whole: Source) -> Iterator[Source]:
    """A tool result, in pieces when it lists documents by number; nothing of it is left out."""
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


def _of_prompt(whole: Source, kind: SourceKind) -> Iterator[Source]:
    """A system or user message: its documents, and those stretches of its prose that state something."""
    for block in _blocks(whole.text):
        if block.kind == "document":
            yield _of_block(whole, block)
        elif block.kind == "prose":
            for start, end in _statements(whole.text, block):
                yield replace(_slice(whole, start, end), kind=kind)


def _of_block(whole: Source, block: Block) -> Source:
    """Return a document of a message, under the names that the message gives it."""
    found = _slice(whole, block.start, block.end)
    return replace(
        found, title=block.title or whole.title, labels=block.labels, label=block.label, url=block.url or whole.url
    )


def _blocks(text: str) -> tuple[Block, ...]:
    """A text taken apart: once for its evidence, and not again soon after for what it asks."""
    return _lately(text) if len(text) <= _LONGEST_KEPT else tuple(take_apart(text))


@memo(32, 4096, long_entries=4)
def _lately(text: str) -> tuple[Block, ...]:
    return tuple(take_apart(text))


def _slice(whole: Source, start: int, end: int) -> Source:
    return replace(whole, text=whole.text[start:end], offset=whole.offset + start)


def _statements(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """The runs of sentences of a prose block that neither ask nor instruct."""
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
    """Gives ids to the sources of message `index`: "m3.d2" to its documents, "m3" or "m3.p1" to the rest."""
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
    """The sources with every id that is already taken given a number of its own."""
    taken: set[str] = set()
    copies: dict[str, int] = {}
    for source in sources:
        name = source.id or "s"
        while name in taken:
            copies[source.id] = copies.get(source.id, 1) + 1
            name = f"{source.id or 's'}#{copies[source.id]}"
        taken.add(name)
        yield source if name == source.id else replace(source, id=name)
