"""Read the messages of an exchange: the sources in them, the question, and the minimum size of the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from string import punctuation

from groundwire.caches import memo
from groundwire.domain import Exchange, Message, Part, Source, SourceKind
from groundwire.evidence.index import MAX_CHARS
from groundwire.evidence.passages import cut
from groundwire.evidence.requests import is_cue, is_question, is_request
from groundwire.evidence.tables import Piece
from groundwire.evidence.templates import Block, take_apart
from groundwire.report import PromptSize

MAX_COST = MAX_CHARS
_LINE_COST = 80
_MAX_CACHED = 2**18  # in characters; the blocks of longer texts are not cached


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
            whole = (_whole(message, index, part) for index, part in enumerate(message.parts))
            found += _numbered(message.index, _of_message(whole) if cost <= room else whole)
            room -= cost
    return tuple(_unique(source for source in found if source.text.strip() or source.kind == "facts"))


def _cost(text: str) -> int:
    """Return the cost of reading a text, in characters of prose: a line or a tag costs as much as a sentence."""
    return len(text) + _LINE_COST * (text.count("\n") + text.count("<"))


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
            return next((found for part in reversed(message.parts) if (found := _question_in(part))), "")
    return ""


def _question_in(part: Part) -> str:
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


def _of_message(parts: Iterator[Source]) -> Iterator[Source]:
    for part in parts:
        if part.kind == "document":
            yield part
        else:
            yield from _of_tool(part) if part.kind == "tool" else _of_prompt(part)


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
    return _cached_blocks(text) if len(text) <= _MAX_CACHED else tuple(take_apart(text))


@memo(32, 4096, long_entries=4)
def _cached_blocks(text: str) -> tuple[Block, ...]:
    return tuple(take_apart(text))


def _slice(whole: Source, start: int, end: int) -> Source:
    return replace(whole, text=whole.text[start:end], offset=whole.offset + start)


def _statements(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the spans of consecutive sentences in a prose block that neither ask nor instruct."""
    for asks, group in groupby(_pieces(text, block), lambda piece: is_request(piece.text)):
        if not asks:
            first, *rest = group
            yield first.start, (rest or [first])[-1].end


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


_BREAKS = punctuation.replace("'", "").encode()  # newer tokenizers keep "don't" in one piece
_SPACED = bytes.maketrans(_BREAKS, b" " * len(_BREAKS))
_UNSPACED = re.compile(  # the scripts from Thai to Khmer, and from Chinese to Korean
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_PER_TOKEN = 6  # characters of these scripts; the measured maxima are 2.4 for text and 4.3 for a repeated word
_LETTERS = 4.5  # letters and digits per token; 99.9 % of texts have fewer with the newest tokenizers
_MARGIN = 0.9
_PIECE = 2**17  # characters counted in one step, during which the GIL is held
_NO_COUNT = 1  # reported by servers that read the whole prompt from a cache, or that do not count
_LEAST_MISSING = 100  # tokens; a truncation drops at least as many


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on the tokens of a prompt: `sure` holds for every tokenizer, `likely` for nearly every one."""

    sure: int = 0
    likely: int = 0


def prompt_size(reported: int | None, bounds: Bounds) -> PromptSize:
    """Compare a reported token count with the bounds of a prompt, and decide whether the prompt was truncated."""
    if reported is None or reported <= _NO_COUNT:
        return PromptSize(None, bounds.sure)
    least = max(bounds.sure, bounds.likely if _is_mark(reported) else 0)
    return PromptSize(reported, least, least - reported >= _LEAST_MISSING)


def _is_mark(reported: int) -> bool:
    """Return whether a token count is one that Ollama reports for a truncated prompt.

    These are its full context window, or half of it plus a few tokens it keeps. One count in 200 matches by chance.
    """
    return reported % 1024 == 0 or (reported > 512 and reported % 512 in (2, 3))


def bounds_of(messages: Sequence[Message]) -> Bounds:
    """Return the bounds of the prompt made of `messages`.

    Tokenizers split text at white space and, with few exceptions, at punctuation, so every run between is at least one
    token; in scripts without spaces, characters are counted. docs/truncation.md has the measurements.
    """
    stretches = letters = unspaced = 0
    for text in _surely_sent(messages):
        for at in range(0, len(text), _PIECE):
            piece = text[at : at + _PIECE]
            spaced = piece.encode("utf-8", "replace").translate(_SPACED)
            stretches += len(spaced.split()) - (at > 0)  # a run may be split between two steps
            letters += len(piece) - sum(map(spaced.count, (b" ", b"\n", b"\t", b"\r")))
            unspaced += 0 if piece.isascii() else sum(map(len, _UNSPACED.findall(piece)))
    return Bounds(int(_MARGIN * max(stretches, unspaced / _PER_TOKEN)), int(letters / _LETTERS))


def _surely_sent(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts that are part of the prompt unchanged: no files, and no reasoning in earlier answers."""
    for message in messages:
        for part in message.parts:
            if part.kind != "document":
                yield part.text.rpartition("</think>")[2] if message.role == "assistant" else part.text
