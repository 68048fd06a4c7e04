"""Parse message content of any common shape (a string, OpenAI's parts, Anthropic's blocks) into parts of text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from groundwire.domain import Message, Part, Role

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_NO_CONTEXT = _TEXT_TYPES | {
    *("refusal", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"),
}


def read_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages with a known role, in order, with their index in the list and the parts that hold text."""
    if not isinstance(messages, list):
        return ()
    found = (read_message(index, message) for index, message in enumerate(messages) if isinstance(message, dict))
    return tuple(message for message in found if message is not None)


def read_message(index: int, message: Mapping[str, Any]) -> Message | None:
    """Parse one message, or return None if its role is unknown."""
    role = _ROLES.get(_string(message.get("role")) or "")
    return Message(index, role, tuple(read_parts(message.get("content")))) if role else None


def unread_parts(messages: Any) -> int:
    """Return the number of message parts without readable text: images, audio, and files that are not plain text."""
    if not isinstance(messages, list):
        return 0
    return sum(unread_in(message.get("content")) for message in messages if isinstance(message, dict))


def unread_in(content: Any) -> int:
    """Return the number of parts without readable text in the content of one message."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return sum(_string(block.get("type")) not in _NO_CONTEXT and not any(_block(block, "text")) for block in blocks)


def read_parts(content: Any, kind: Literal["text", "document", "tool_result"] = "text") -> Iterator[Part]:
    """Yield the parts that hold text, from content of any shape; plain text becomes a part of `kind`."""
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
        text = "\n".join(part.text for part in read_parts(block.get("content")))
        source = _string(block.get("source"))
        yield Part(text, "document", source, _string(block.get("title")), source if is_url(source) else None)
    elif type_ in ("tool_result", "mcp_tool_result"):
        yield from read_parts(block.get("content"), "tool_result")
    elif type_ == "web_fetch_tool_result":
        fetched = block.get("content")
        yield from read_parts([fetched.get("content")] if isinstance(fetched, dict) else None)


def _document(block: Mapping[str, Any]) -> Iterator[Part]:
    """Read Anthropic's document block: its text, or its content blocks joined."""
    source = block.get("source")
    if not isinstance(source, dict):
        return
    content = source.get("data") if source.get("type") == "text" else source.get("content")
    text = "\n".join(part.text for part in read_parts(content))
    if text:
        yield Part(text, "document", None, _string(block.get("title")))


def _file(file: Any) -> Iterator[Part]:
    """Read OpenAI's file part if it holds plain text or JSON in a data URL; yield nothing for other files."""
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


def is_url(text: str | None) -> bool:
    """Return whether a text is an HTTP or HTTPS URL."""
    return text is not None and text.startswith(("http://", "https://")) and not any(map(str.isspace, text))


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
