"""Message content in any of the shapes in use (a string, OpenAI's parts, Anthropic's blocks), read as parts of text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from proxy.types import Message, Part, Role

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_NO_CONTEXT = _TEXT_TYPES | {"refusal", "thinking", "redacted_thinking", "tool_use"}


def read_messages(messages: Any) -> tuple[Message, ...]:
    """The messages of a request that have a known role, in order, with their index; images and audio hold no text."""
    if not isinstance(messages, list):
        return ()
    return tuple(
        Message(index, _ROLES[message["role"]], tuple(_parts(message.get("content"))))
        for index, message in enumerate(messages)
        if isinstance(message, dict) and _string(message.get("role")) in _ROLES
    )


def unread_parts(messages: Any) -> int:
    """How many parts of a request's messages hold no text that could be read: images, audio, files of other kinds."""
    contents = (
        [message.get("content") for message in messages if isinstance(message, dict)]
        if isinstance(messages, list)
        else []
    )
    blocks = [
        block for content in contents if isinstance(content, list) for block in content if isinstance(block, dict)
    ]
    return sum(not any(_block(block, "text")) and block.get("type") not in _NO_CONTEXT for block in blocks)


def _parts(content: Any, kind: Literal["text", "document", "tool_result"] = "text") -> Iterator[Part]:
    if isinstance(content, str):
        yield Part(content, kind)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield Part(block, kind)
            elif isinstance(block, dict):
                yield from _block(block, kind)


def _block(block: Mapping[str, Any], kind: Literal["text", "document", "tool_result"]) -> Iterator[Part]:
    type_ = _string(block.get("type"))
    if type_ in _TEXT_TYPES and isinstance(block.get("text"), str):
        yield Part(block["text"], kind)
    elif type_ in ("file", "input_file"):
        yield from _file(block.get("file", block))
    elif type_ == "document":
        yield from _document(block)
    elif type_ == "search_result":
        text = "\n".join(part.text for part in _parts(block.get("content")))
        yield Part(text, "document", _string(block.get("source")), _string(block.get("title")))
    elif type_ == "tool_result":
        yield from _parts(block.get("content"), "tool_result")


def _document(block: Mapping[str, Any]) -> Iterator[Part]:
    """Anthropic's document block: its text, or its content blocks joined."""
    source = block.get("source")
    if not isinstance(source, dict):
        return
    content = source.get("data") if source.get("type") == "text" else source.get("content")
    text = "\n".join(part.text for part in _parts(content))
    if text:
        yield Part(text, "document", None, _string(block.get("title")))


def _file(file: Any) -> Iterator[Part]:
    """OpenAI's file part when it holds plain text in a data URL; other files cannot be read here."""
    if not isinstance(file, dict) or not isinstance(file.get("file_data"), str):
        return
    header, comma, data = file["file_data"].partition(",")
    if not comma or not header.startswith(("data:text/", "data:application/json")):
        return
    try:
        raw = base64.b64decode(data, validate=True) if header.endswith(";base64") else unquote_to_bytes(data)
        yield Part(raw.decode(), "document", None, _string(file.get("filename")))
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
