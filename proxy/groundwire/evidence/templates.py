"""Split a prompt into the documents that a template inserted, questions and prose.

Recognised are XML-like tags, numbered blocks (`[1] …`, `Document 2: …`), fields (`Source: a.pdf` above `Content: …`),
sections after an introduction (`Context:`, `Use the following pieces of context …`, as in LangChain, LlamaIndex and
Haystack), and rules or code fences around or between documents. Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Literal, NamedTuple

from groundwire.evidence.requests import is_request

Line = tuple[int, int]


class Block(NamedTuple):
    """A part of a message: a document with the names by which an answer may cite it, a question, or prose.

    `label` is the id or name that the message gives to a document.
    """

    start: int
    end: int
    kind: Literal["document", "prose", "question"]
    title: str | None = None
    labels: tuple[str, ...] = ()
    label: str | None = None
    url: str | None = None


_NOUNS = (
    r"documents?|docs?|passages?|sources?|chunks?|context|(?:search )?results?|excerpts?|articles?|snippets?|"
    r"references?|extracts?|files?|web ?pages?|evidence|reviews?|emails?|tickets?"
)
_MATERIAL = (
    rf"{_NOUNS}|contexts|text|texts|information|data|background|knowledge(?: base)?|materials?|transcripts?|reports?|"
    rf"news|parts|content|paragraphs?|faqs?|policy|policies|tables?|story|stories|conversations?|dialogues?|records?|"
    r"contract|letter|notes?|facts?"
)
_MARKED = re.compile(
    r"[ \t>]{0,12}(?P<lead>#{1,6}[ \t]*|\*\*|__|-{2,}[ \t]*|={2,}[ \t]*|\*[ \t]|-[ \t])?(?P<open>[\[【(<]?)"
    rf"(?:(?P<noun>{_NOUNS})[ \t]?(?:id|no\.?|number)?[ \t_.:#-]{{0,3}}[\[【(]?)?\^?"
    r"(?P<number>\d{1,4}|(?<=[ \t])[A-Z])(?P<close>[\]】)>]?)(?P<sep>[ \t]*(?:\*\*|__)?[ \t]*(?:[:|–—]|"
    r"-{1,3}(?=[ \t\n]|$)|={2,}|\.(?=\s)|\)(?=\s)|(?=\()|$|(?=\n)))?",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[ \t>]{0,12}(?:[-*][ \t])?[\[【](?P<name>[^\W_][\w.-]{0,80})[\]】](?P<sep>[ \t]*[:-]?)")
_FIELD = re.compile(
    r"[ \t>]{0,12}(?:[-*][ \t])?(?:\*\*)?(?P<key>source|title|document|file[ _]?name|file[ _]?path|file|url|link|"
    r"(?:doc(?:ument)?[ _]?)?id|name|"
    r"content|page[ _]content|text|body|snippet|passage)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*(?P<value>.*)$",
    re.IGNORECASE,
)
_CONTENT_KEYS = frozenset(("content", "page content", "page_content", "text", "body", "snippet", "passage"))
_PLACE_KEYS = frozenset(
    ("source", "url", "link", "file", "file_path", "file path", "file_name", "filename", "file name")
)
_BARE = re.compile(r"[ \t]{0,4}(?P<number>\d{1,3})[.)][ \t]+(?=\S)")
_RULE = re.compile(r"[ \t]*(-{3,}|={3,}|\*{3,}|_{3,}|~{3,}|#{3,}|`{3,}|\"{3}|'{3})[ \t]*(?:[a-z]{0,10})[ \t]*$")
_HEADER = re.compile(
    r"[ \t]{0,12}(?P<mark>#{1,6}[ \t]*|\*\*|%|[-=]{2,}[ \t]*|\[)?(?:(?:the|retrieved|relevant|reference|provided|"
    rf"supporting|additional|source|search|background|following|given|extracted|company|internal|product|structured|"
    rf"input|your|our|current|available|context|document)[ \t]+){{0,3}}(?:{_MATERIAL})(?:[ \t]+(?:information|data|"
    r"documents?|passages?|context|chunks|excerpts|content|results?|start|begins?))?"
    r"(?:[ \t]*\([^()\n]{1,60}\))?(?:\*\*)?(?P<end>[ \t]*:(?:\*\*)?|[ \t]*[-=]{2,}|\])?[ \t]*",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    rf"\b(?:following|below|these|this|given|provided|here (?:is|are)|based (?:only |solely |strictly )?on|"
    rf"using)\b.{{0,120}}\b(?:{_MATERIAL})\b|\b(?:{_MATERIAL})\b.{{0,40}}\b(?:below|following|are|is)\b",
    re.IGNORECASE,
)
_BELOW = re.compile(rf"\b(?:{_MATERIAL})\b[^.?!]{{0,40}}\b(?:is|are)[^.?!]{{0,30}}\bbelow\b", re.IGNORECASE)
_INLINE = re.compile(
    rf".{{0,200}}?\b(?:following|below|this|given|"
    rf"these)\b[^:.?\n]{{0,60}}\b(?:{_MATERIAL})\b[^:.?\n]{{0,60}}:[ \t]+(?=\S)",
    re.IGNORECASE,
)
_SOFT = re.compile(rf"\b(?:following|below|pieces? of)\b[^.?!]{{0,60}}\b(?:{_MATERIAL})\b", re.IGNORECASE)
_ABOVE = re.compile(rf"\b(?:{_MATERIAL})\b[^.?!]{{0,20}}\babove\b|\babove (?:{_MATERIAL})\b", re.IGNORECASE)
_QUESTION_LABEL = re.compile(
    r"[#*_\s>\[-]{0,10}(?:(?:user|human|original|my|customer|final|the|actual|current|input|here is the|"
    r"now answer the)(?:['’]s)? ){0,2}(?:question|query|q|input|request|"
    r"follow[ -]?up question)\s*[*_\]]{0,2}\s*(?:is\s*)?:\s*[*_]{0,2}|[ \t]*#{1,6}[ \t]*(?:user )?(?:question|"
    r"query)[ \t]*$|.{0,80}\b(?:following|this|user['’]s) (?:question|query)\b[^:\n]{0,40}:\s*",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"[ \t]{0,8}(?:human|user|customer)[ \t]*:[ \t]*", re.IGNORECASE)
_ANSWER = re.compile(
    r"[#*_\s>\[-]{0,10}(?:(?:helpful|final|your|short|detailed|the|concise)[ \t]){0,2}(?:answer|response|reply|output|"
    r"summary|overview|assistant|ai|chatbot|translation)(?: in \w+)?[*_\]]{0,2}[ \t]*:?[*_]{0,2}(?P<rest>.*)$",
    re.IGNORECASE,
)
_INSTRUCTION_HEADER = re.compile(
    r"[#*_\s-]{0,10}(?:instructions?|tasks?|rules|guidelines|requirements|output format|format|"
    r"constraints)\s*[*_]{0,2}:?[*_]{0,2}\s*$",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r".{0,400}\bfor example[:,]?[ \t]*$|[#*_ ]{0,6}examples?\s*[*_]{0,2}:\s*$", re.IGNORECASE)
_EXAMPLE_END = re.compile(
    r".{0,40}\bnow it['’]s your turn\b|[ \t]*begin!?\b|[ \t]*now answer\b|[#*_ ]{0,6}end of examples?\b",
    re.IGNORECASE,
)

_TAG = re.compile(r"<(?P<shut>/?)(?P<name>[a-zA-Z][\w-]{0,40})(?P<attributes>(?:\s[^<>]*)?)>")
_ATTRIBUTE = re.compile(r"([\w:-]{1,40})\s*=\s*(?:\"([^\"]{0,300})\"|'([^']{0,300})'|([^\s\"'>]{1,300}))")
_CHILD = re.compile(
    r"<(title|source|name|url|file_?name|file_?path|path|id|doc_id|document_id|index|number)>\s*([^<]{1,300}?)\s*</",
    re.IGNORECASE,
)
_DOCUMENT_TAGS = frozenset(
    "document doc passage source search_result result article chunk snippet excerpt reference webpage web_page "
    "page file email transcript item note review record".split()
)
_SECTION_TAGS = frozenset(
    "documents docs context contexts sources passages search_results results articles chunks snippets excerpts "
    "references knowledge knowledge_base background data information info retrieved_context retrieved_documents "
    "retrieved reference_material material evidence facts content input text report policy policies faq pages "
    "files emails contract table".split()
)
_QUESTION_TAGS = frozenset("question query user_query user_question user_input".split())
_ASIDE_TAGS = frozenset(
    "instructions instruction task tasks examples example format output_format rules guidelines role persona "
    "thinking answer constraints".split()
)
_KNOWN_TAGS = _DOCUMENT_TAGS | _SECTION_TAGS | _QUESTION_TAGS | _ASIDE_TAGS
_ID_KEYS = ("id", "index", "number", "n", "no", "doc_id", "document_id", "ref")
_DEEPEST = 8
_TITLE_KEYS = ("title", "name", "source", "file", "filename", "file_name", "url", "href", "path")
_LABEL_KEYS = (  # an index or a number only if there is nothing else
    *("id", "doc_id", "document_id", "ref", "source", "file", "filename", "file_name", "file_path", "path"),
    *("document", "name", "title", "index", "number", "n", "no", "url", "link", "href"),
)
_URL_KEYS = ("url", "link", "href", "source", "file_path", "path", "id", "title", "name", "document")
_URL = re.compile(r"https?://\S+$")
_FILE = re.compile(r"[\w./\\-]{1,200}\.(?:pdf|txt|md|html?|docx?|csv|json|xml|pptx?|xlsx?)$", re.IGNORECASE)
_METADATA = re.compile(
    r"[ \t]{0,4}(?P<key>page_label|file_path|file_name|file_type|file_size|creation_date|last_modified_date|"
    r"last_accessed_date|document_title|section_summary|node_id|doc_id|ref_doc_id|document_id|source|url|title|author|"
    r"date|page|id)[ \t]*:[ \t]*(?P<value>.*)$",
    re.IGNORECASE,
)
_MAX_METADATA = 16
_LLAMA_INDEX = frozenset(
    ("page_label", "file_path", "file_name", "file_type", "file_size", "creation_date", "last_modified_date", "node_id")
)
_PLACES = frozenset(("source", "url", "file_path", "file_name", "doc_id", "document_id", "document_title"))
_WRITTEN = re.compile(
    r"(?:\bDocument\()?(?:id=(?P<id>None|'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"),\s?)?"
    r"(?:metadata=(?P<before>\{[^{}]{0,4000}(?:\{[^{}]{0,400}\}[^{}]{0,400}){0,8}\}),\s?)?"
    r"page_content=(?P<quote>['\"])"
)
_WRITTEN_END = re.compile(
    r"(?:,?\s{0,2}metadata=(?P<after>\{[^{}]{0,4000}(?:\{[^{}]{0,400}\}[^{}]{0,400}){0,8}\}))?(?:,\s?\w+='[^'\n]{0,100}')*\)?"
)
_CLOSING = {"'": re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL), '"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)}
_ENTRY = re.compile(r"['\"](\w{1,40})['\"]:\s?(?:'([^'\n]{0,300})'|\"([^\"\n]{0,300})\"|(\d{1,18}))")


def take_apart(text: str) -> list[Block]:
    """Return the documents, questions and prose of one message, in order and without overlap.

    Text in no block belongs to the template: tags, fences, examples, instructions in separate tags, and white space.
    """
    blocks: list[Block] = []
    position = 0
    elements = _elements(text)
    for element in _outermost(elements, 0, len(text)):
        blocks += _read_prose(text, position, element.start)
        blocks += _read_element(text, element, elements)
        position = element.end
    blocks += _read_prose(text, position, len(text))
    return _with_ordinals([_with_head(text, block) for trimmed in blocks if (block := _trimmed(text, trimmed))])


def _trimmed(text: str, block: Block) -> Block | None:
    """Return the block without white space around it, or None if it has no letter or digit."""
    slice_ = text[block.start : block.end]
    stripped = slice_.strip()
    if not any(map(str.isalnum, stripped)):
        return None
    start = block.start + len(slice_) - len(slice_.lstrip())
    return block._replace(start=start, end=start + len(stripped))


def _with_ordinals(blocks: list[Block]) -> list[Block]:
    """Add its position as a label to each document, unless a document of the message already has a number."""
    if any(label.isdigit() for block in blocks for label in block.labels):
        return blocks
    numbers = map(str, count(1))
    return [
        block._replace(labels=(next(numbers), *block.labels)) if block.kind == "document" else block for block in blocks
    ]


# Tags


class _Element(NamedTuple):
    name: str
    attributes: str
    start: int
    inner_start: int
    inner_end: int
    end: int


def _outermost(elements: Sequence[_Element], low: int, high: int) -> Iterator[_Element]:
    """Yield the elements inside `[low, high)` that are in no other such element."""
    for index in range(bisect_left(elements, low, key=attrgetter("start")), len(elements)):
        element = elements[index]
        if element.start >= high:
            return
        if element.start >= low and element.end <= high:
            yield element
            low = element.end


def _elements(text: str) -> list[_Element]:
    """Return the elements with known tags that have a closing tag, in order of their start."""
    waiting: dict[str, list[re.Match[str]]] = {}
    found: list[_Element] = []
    for tag in _TAG.finditer(text):
        name = tag["name"].lower().replace("-", "_")
        if name not in _KNOWN_TAGS:
            continue
        if not tag["shut"]:
            if not tag["attributes"].endswith("/"):
                waiting.setdefault(name, []).append(tag)
        elif partners := waiting.get(name):
            opening = partners.pop()
            found.append(_Element(name, opening["attributes"], opening.start(), opening.end(), tag.start(), tag.end()))
    return sorted(found, key=lambda element: (element.start, -element.end))


def _read_element(text: str, element: _Element, elements: Sequence[_Element], depth: int = 0) -> Iterable[Block]:
    low, high = element.inner_start, element.inner_end
    if element.name in _QUESTION_TAGS:
        return [Block(low, high, "question")]
    if element.name in _ASIDE_TAGS:
        return []
    inside = [inner for inner in _outermost(elements, low, high) if inner.name in _DOCUMENT_TAGS | _SECTION_TAGS]
    if element.name in _DOCUMENT_TAGS or not inside or depth == _DEEPEST:
        metadata = _attributes_of(text, element)
        if element.name in _DOCUMENT_TAGS or any(key in metadata for key in (*_ID_KEYS, *_TITLE_KEYS)):
            return [_named_block(low, high, metadata)]
        return _written_documents(text, low, high) or _documents(text, _lines(text, low, high), low, high)
    blocks: list[Block] = []
    position = low
    for inner in inside:
        blocks.append(Block(position, inner.start, "document"))
        blocks += _read_element(text, inner, elements, depth + 1)
        position = inner.end
    return [*blocks, Block(position, high, "document")]


def _attributes_of(text: str, element: _Element) -> dict[str, str]:
    """Return the metadata of a document element, from its attributes and its first children."""
    metadata = {key.lower(): a or b or c for key, a, b, c in _ATTRIBUTE.findall(element.attributes[:2000])}
    head_end = min(element.inner_end, element.inner_start + 1000)
    for child in _CHILD.finditer(text, element.inner_start, head_end):
        metadata.setdefault(child[1].lower(), child[2])
    return {key: value for key, value in metadata.items() if value}


def _named_block(low: int, high: int, metadata: Mapping[str, str]) -> Block:
    """Return a document with the title, the label, the URL and the names in its metadata."""
    title = _first_of(metadata, _TITLE_KEYS)
    labels = [metadata[key] for key in (*_ID_KEYS, *_TITLE_KEYS) if key in metadata]
    return Block(
        low, high, "document", title, tuple(dict.fromkeys(labels)), _first_of(metadata, _LABEL_KEYS), _url_in(metadata)
    )


def _first_of(metadata: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((metadata[key] for key in keys if key in metadata), None)


def _url_in(metadata: Mapping[str, str]) -> str | None:
    return next((metadata[key] for key in _URL_KEYS if key in metadata and _URL.match(metadata[key])), None)


def _with_head(text: str, block: Block) -> Block:
    """Return a document without a name, or with only a number, with the names in its first lines."""
    if block.kind != "document" or (block.label is not None and not block.label.isdecimal()):
        return block
    metadata: dict[str, str] = {}
    for number, line in enumerate(text[block.start : min(block.end, block.start + 3000)].split("\n")[:_MAX_METADATA]):
        line = line.strip()
        if found := _METADATA.match(line):
            metadata.setdefault(found["key"].lower(), found["value"].strip(" *_"))
        elif number == 0 and _URL.match(line):
            metadata["url"] = line
        elif number == 0 and _FILE.match(line):
            metadata["source"] = line
        else:
            break
    metadata = {key: value for key, value in metadata.items() if value and (len(metadata) > 1 or key in _PLACES)}
    label, url = _first_of(metadata, _LABEL_KEYS), _url_in(metadata)
    labels = tuple(dict.fromkeys((*block.labels, *filter(None, (label, url)))))
    return block._replace(labels=labels, label=block.label or label, url=block.url or url)


def _written_documents(text: str, low: int, high: int) -> list[Block]:
    """Return documents in the form that LangChain prints: `page_content='…' metadata={'source': '…'}`."""
    blocks: list[Block] = []
    position = low
    while (opening := _WRITTEN.search(text, position, high)) is not None:
        closing = _CLOSING[opening["quote"]].match(text, opening.end(), high)
        if closing is None:
            break
        ended = _WRITTEN_END.match(text, closing.end(), high)
        written = (opening["before"] or "") + ((ended["after"] or "") if ended else "")
        metadata = {key.lower(): a or b or c for key, a, b, c in _ENTRY.findall(written) if a or b or c}
        if opening["id"] and opening["id"] != "None":
            metadata["id"] = opening["id"].strip("'\"")
        blocks.append(_named_block(opening.end(), closing.end() - 1, metadata))
        position = ended.end() if ended else closing.end()
    return blocks


# Lines


class _Opening(NamedTuple):
    """The start of a section of documents, its line, and the style of its items if known."""

    start: int
    line: int
    style: str = ""
    fenced: bool = False
    plural: bool = False


def _read_prose(text: str, low: int, high: int) -> list[Block]:
    """Return the blocks of a part without known tags."""
    if low >= high:
        return []
    if written := _written_documents(text, low, high):
        first = _WRITTEN.search(text, low, high)
        ended = _WRITTEN_END.match(text, written[-1].end + 1, high)
        before = first.start() if first else low
        after = ended.end() if ended else written[-1].end
        return [*_read_prose(text, low, before), *written, *_read_prose(text, after, high)]
    lines = _lines(text, low, high)
    lines_to_read, skipped = _without_example(text, lines)
    found = (_opening(text, lines, lines_to_read), _soft_opening(text, lines, lines_to_read))
    opening = min(filter(None, found), key=attrgetter("line"), default=None)
    if opening is None:
        return _above(text, lines, low, high)
    before = high if opening.line >= len(lines) else min(opening.start, lines[opening.line][1])
    first_end = lines[skipped[0]][0] if skipped and lines[skipped[0]][0] < before else before
    blocks = _prose(text, lines, low, first_end)
    last = _section_end(text, lines, opening)
    end = lines[last][0] if last < len(lines) else high
    blocks += _documents(text, lines[opening.line : last], opening.start, end, opening)
    return [*blocks, *_prose(text, lines[last:], end, high)]


def _above(text: str, lines: Sequence[Line], low: int, high: int) -> list[Block]:
    """Return prose, or the document before a last line that refers to it as "the article above"."""
    for start, end in reversed(lines[-8:]):
        if start - low >= 80 and end - start < 500 and _ABOVE.search(text, start, end) and is_request(text[start:end]):
            return [Block(low, start, "document"), *_prose(text, lines, start, high)]
    return _prose(text, lines, low, high)


def _prose(text: str, lines: Sequence[Line], low: int, high: int) -> list[Block]:
    """Return prose, with the text after a "Question:" line in it as a question."""
    for start, end in lines:
        if start >= high:
            break
        if start >= low and (question := _QUESTION_LABEL.match(text, start, end) or _SPEAKER.match(text, start, end)):
            stop = min(high, next((low for low, up in lines if low > start and _ends_question(text, low, up)), high))
            return [Block(low, start, "prose"), Block(question.end(), stop, "question"), Block(stop, high, "prose")]
    return [Block(low, high, "prose")]


def _ends_question(text: str, start: int, end: int) -> bool:
    is_end = _is_cue(text[start:end]) or bool(_RULE.match(text, start, end))
    return is_end or _section_header_end(text, start, end) is not None


def _section_header_end(text: str, start: int, end: int) -> int | None:
    """Return the start of the content of a section whose header ("Context:", "## Documents") is this line, else None.

    A line that announces material also opens a section: it ends in a colon, or announces that the material is below.
    """
    header = _HEADER.match(text, start, end)
    if header and (header["end"] or (header["mark"] and header.end() == end)):
        return header.end()
    tail = text[max(start, end - 300) : end].rstrip(" \t*_")
    if not tail.endswith(":"):
        return end if _BELOW.search(tail) else None
    sentence = re.split(r"[.?!]\s", tail)[-1]
    named = re.search(rf"\b(?:{_MATERIAL})\b", sentence, re.IGNORECASE)
    announced = is_request(sentence) or _INTRODUCES.search(sentence)
    question = _QUESTION_LABEL.match(tail) or _is_cue(sentence) or "question" in sentence[-30:].lower()
    return end if named and announced and not question else None


def _lines(text: str, low: int, high: int) -> list[Line]:
    spans: list[Line] = []
    while low < high:
        end = text.find("\n", low, high)
        end = high if end < 0 else end
        spans.append((low, end))
        low = end + 1
    return spans


def _without_example(text: str, lines: Sequence[Line]) -> tuple[int, range | None]:
    """Return the line from which to look for a template, and the lines of a worked example, if any."""
    for index, (start, end) in enumerate(lines):
        if end - start < 2000 and _EXAMPLE.match(text, start, end):
            for last in range(index + 1, min(len(lines), index + 60)):
                if _EXAMPLE_END.match(text, *lines[last]):
                    return last, range(index, last)
            return 0, None
    return 0, None


def _opening(text: str, lines: Sequence[Line], first: int) -> _Opening | None:
    """Return the first line that begins a section of documents."""
    for index in range(first, len(lines)):
        start, end = lines[index]
        if start == end:
            continue
        if style := _item_style(text, lines, index):
            return _Opening(start, index, style)
        if (content := _section_header_end(text, start, end)) is not None:
            return _opened(text, lines, index, content)
        inline = (
            _INLINE.match(text, start, min(end, start + 400))
            if is_request(text[start : min(end, start + 400)])
            else None
        )
        if inline and not _QUESTION_LABEL.match(text, start, end):
            return _Opening(inline.end(), index)
        fence = _RULE.match(text, start, end)
        if fence and fence[1][0] in "`\"'" and _last_same(text, lines, index) > index:
            return _Opening(min(end + 1, lines[-1][1]), index + 1, fenced=True)
    return None


def _opened(text: str, lines: Sequence[Line], index: int, content: int) -> _Opening:
    """Return the opening at line `index` whose content begins at `content`, after a fence if there is one."""
    plural = "s" in text[lines[index][0] : content].rstrip(" :*\n")[-2:]
    following = index if text[content : lines[index][1]].strip() else index + 1
    while following < len(lines) and not text[slice(*lines[following])].strip():
        following += 1
    if following >= len(lines):
        return _Opening(content, index, plural=plural)
    if following > index and _RULE.match(text, *lines[following]) and _last_same(text, lines, following) > following:
        return _Opening(min(lines[following][1] + 1, lines[-1][1]), following + 1, fenced=True)
    start = content if following == index else lines[following][0]
    return _Opening(start, following, _item_style(text, lines, following) if following > index else "", plural=plural)


def _soft_opening(text: str, lines: Sequence[Line], first: int) -> _Opening | None:
    """Return the first line other than a request after an instruction with "the following context" but no colon."""
    for index in range(first, len(lines)):
        start, end = lines[index]
        if end - start > 1500 or not _SOFT.search(text, start, end) or not is_request(text[start:end]):
            continue
        for later in range(index + 1, len(lines)):
            line = text[slice(*lines[later])].strip()
            if line and _QUESTION_LABEL.match(line):
                return None
            if line and not all(map(is_request, _rough_sentences(line))):
                return _Opening(lines[later][0], later)
        return None
    return None


def _rough_sentences(line: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s+", line[:3000])


def _last_same(text: str, lines: Sequence[Line], index: int) -> int:
    """Return the last line with the same rule or fence as line `index`."""
    rule = _RULE.match(text, *lines[index])
    for last in range(len(lines) - 1, index, -1):
        other = _RULE.match(text, *lines[last])
        if rule and other and other[1] == rule[1]:
            return last
    return index


def _section_end(text: str, lines: Sequence[Line], opening: _Opening) -> int:
    """Return the line that ends the section: a closing fence, a final question, or trailing instructions."""
    if opening.fenced:
        return _last_same(text, lines, opening.line - 1)
    last = min(_last_question(text, lines, opening), _first_rules(text, lines, opening))
    while last > opening.line + (text[opening.start : lines[opening.line][1]].strip() != ""):
        line = text[slice(*lines[last - 1])].strip()
        if line and not (_RULE.match(line) and not opening.style) and not _is_template_line(line):
            break
        last -= 1
    return last if last > opening.line else len(lines)


def _first_rules(text: str, lines: Sequence[Line], opening: _Opening) -> int:
    """Return the line of a header such as "## Instructions" that is followed mostly by requests to the assistant."""
    for index in range(opening.line + 1, len(lines)):
        start, end = lines[index]
        if end - start > 60 or not _INSTRUCTION_HEADER.match(text, start, end):
            continue
        below = [line for span in lines[index + 1 : index + 21] if (line := text[slice(*span)].strip())]
        if sum(map(is_request, below)) * 2 > len(below):
            return index
    return len(lines)


def _is_template_line(line: str) -> bool:
    """Return whether a line at the end of a section addresses the assistant, or is only a cue for the answer."""
    if _ANSWER.match(line):
        return _is_cue(line) or (":" not in line[:60] and all(map(is_request, _rough_sentences(line))))
    return bool(_INSTRUCTION_HEADER.match(line)) or all(map(is_request, _rough_sentences(line)))


def _is_cue(line: str) -> bool:
    """Return whether a line is only a cue for the answer ("Helpful Answer:")."""
    answer = _ANSWER.match(line[:500])
    return answer is not None and not answer["rest"].strip(" :*_")


def _last_question(text: str, lines: Sequence[Line], opening: _Opening) -> int:
    """Return the line of the template's question: the last labelled one, unless it has an answer, as in an FAQ."""
    for index in range(len(lines) - 1, opening.line, -1):
        start, end = lines[index]
        if opening.style and _item(text, lines[index], opening.style):
            return len(lines)
        if _QUESTION_LABEL.match(text, start, end) or _SPEAKER.match(text, start, end):
            return index
        answer = _ANSWER.match(text, start, min(end, start + 500))
        if answer and answer["rest"].strip(" :*_") and ":" in text[start : min(end, start + 60)]:
            return len(lines)
    return len(lines)


# Items


class _Item(NamedTuple):
    """The head of one document in a section: the start of its content, and its label and title."""

    content: int
    label: str
    title: str | None


def _item_style(text: str, lines: Sequence[Line], index: int) -> str:
    """Return the style of the item that line `index` begins, or "". Items of one section have one style."""
    start, end = lines[index]
    if (marked := _MARKED.match(text, start, end)) and _is_marker(marked):
        return f"marked {marked['open']} {(marked['noun'] or '').lower().rstrip('s')}"
    if (named := _NAMED.match(text, start, end)) and _is_name(named["name"]):
        return "named"
    if (field := _FIELD.match(text, start, min(end, start + 2000))) and (key := field["key"].lower()):
        reach = 60 if key in _CONTENT_KEYS | _PLACE_KEYS else 6
        found = _keys(text, lines[index + 1 : index + reach])
        if key in _CONTENT_KEYS:
            return f"field {key}" if found - _CONTENT_KEYS else ""
        nearby = _keys(text, lines[index + 1 : index + 6])
        if nearby & _CONTENT_KEYS or key in found & _PLACE_KEYS:
            return f"field {key}"
    metadata = _METADATA.match(text, start, min(end, start + 2000))
    return f"metadata {metadata['key'].lower()}" if metadata and _begins_metadata(text, start, end) else ""


def _begins_metadata(text: str, start: int, end: int) -> bool:
    """Return whether a line begins lines of metadata in the form of LlamaIndex, which end at an empty line."""
    keys: set[str] = set()
    for _ in range(_MAX_METADATA):
        found = _METADATA.match(text, start, min(end, start + 2000))
        if found is None:
            return not keys.isdisjoint(_LLAMA_INDEX) and not text[start:end].strip()
        keys.add(found["key"].lower())
        start = end + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
    return False


def _keys(text: str, lines: Sequence[Line]) -> set[str]:
    fields = (_FIELD.match(text, start, min(end, start + 2000)) for start, end in lines)
    return {field["key"].lower() for field in fields if field}


def _is_marker(marked: re.Match[str]) -> bool:
    """Return whether a number at the start of a line marks a document: in brackets, or a noun with a separator."""
    if marked["open"] and marked["close"]:
        return marked["open"] != "(" and (marked["open"] != "<" or bool(marked["noun"]))
    return bool(marked["noun"]) and marked["sep"] is not None and not marked["open"]


def _is_name(name: str) -> bool:
    return any(map(str.isdigit, name)) or bool(re.search(r"\.[a-z]{2,5}$", name))


def _item(text: str, line: Line, style: str, previous: int = 0) -> _Item | None:
    """Return the item of this style that `line` begins, or None. Bare numbers must follow `previous`."""
    start, end = line
    if style == "bare":
        bare = _BARE.match(text, start, end)
        fits = bare is not None and int(bare["number"]) == previous + 1
        return _Item(bare.end(), bare["number"], None) if bare and fits else None
    if style == "named":
        named = _NAMED.match(text, start, end)
        return _Item(named.end(), named["name"], None) if named and _is_name(named["name"]) else None
    if style.startswith("metadata "):
        metadata = _METADATA.match(text, start, min(end, start + 2000))
        is_first = text[max(0, start - 2) : start].strip() == "" and _begins_metadata(text, start, end)
        return _Item(start, "", None) if metadata and metadata["key"].lower() == style[9:] and is_first else None
    if style.startswith("field "):
        field = _FIELD.match(text, start, min(end, start + 2000))
        return _Item(start, "", None) if field and field["key"].lower() == style[6:] else None
    marked = _MARKED.match(text, start, end)
    if not marked or not _is_marker(marked):
        return None
    if f"marked {marked['open']} {(marked['noun'] or '').lower().rstrip('s')}" != style:
        return None
    return _Item(marked.end(), marked["number"], _title_after(text[marked.end() : min(end, marked.end() + 200)]))


def _title_after(rest: str) -> str | None:
    """Return the title on the same line as a mark: `(Title: X)`, `(file_name=x.txt):` or a short remainder."""
    rest = rest.strip(" \t*_=-")
    if bracketed := re.match(r"\((?:[\w ]{1,20}[:=]\s*)?([^()\n]{1,150})\)", rest):
        return bracketed[1].strip()
    short = rest.strip(" :#")
    return short if 0 < len(short) <= 80 and short[-1] not in ".!?," else None


def _documents(text: str, lines: Sequence[Line], low: int, high: int, opening: _Opening | None = None) -> list[Block]:
    """Return the documents of a section: its items, else the parts between its rules, else the whole section."""
    style = opening.style if opening else ""
    if not style:
        style = _first_style(text, lines, low, plural=opening is None or opening.plural or opening.fenced)
    if not style:
        return _between_rules(text, lines, low, high)
    blocks: list[Block] = []
    current = _Item(low, "", None)
    previous = 0
    for line in lines:
        item = _item(text, line, style, previous) if line[0] >= low else None
        if item:
            blocks.append(_document(text, current, line[0], style))
            current, previous = item, int(item.label) if item.label.isdecimal() else 0
    return [*blocks, _document(text, current, high, style)]


def _first_style(text: str, lines: Sequence[Line], low: int, plural: bool) -> str:
    """Return the style of the first line of a section that is neither empty nor a rule."""
    for index, line in enumerate(lines):
        if line[0] >= low and (content := text[slice(*line)].strip()) and not _RULE.match(content):
            if plural and (bare := _BARE.match(text, *line)) and bare["number"] == "1":
                return "bare"
            return _item_style(text, lines, index)
    return ""


def _document(text: str, item: _Item, end: int, style: str) -> Block:
    if not style.startswith("field"):
        labels = tuple(dict.fromkeys(filter(None, (item.label, item.title))))
        url = item.title if item.title and _URL.match(item.title) else None
        return Block(item.content, end, "document", item.title, labels, item.label or item.title, url)
    metadata: dict[str, str] = {}
    for line in text[item.content : end].split("\n"):
        if (field := _FIELD.match(line[:2000])) and field["key"].lower() not in _CONTENT_KEYS:
            metadata.setdefault(field["key"].lower().replace(" ", "_"), field["value"].strip(" *_"))
    metadata = {key: value for key, value in metadata.items() if value}
    keys = ("title", "source", "document", "file_name", "filename", "file", "name", "url")
    title = _first_of(metadata, keys)
    labels = tuple(dict.fromkeys(metadata.values()))
    return Block(item.content, end, "document", title, labels, _first_of(metadata, _LABEL_KEYS), _url_in(metadata))


def _between_rules(text: str, lines: Sequence[Line], low: int, high: int) -> list[Block]:
    blocks: list[Block] = []
    for index, (start, end) in enumerate(lines):
        above = text[slice(*lines[index - 1])].strip() if index else ""
        underlines = 0 < len(above) <= 60 and above[-1] not in ".!?"
        if start >= low and _RULE.match(text, start, end) and not underlines:
            blocks.append(Block(low, start, "document"))
            low = min(end + 1, high)
    return [*blocks, Block(low, high, "document")]
