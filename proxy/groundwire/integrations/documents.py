"""Convert the documents of retrieval libraries to sources, and reports to text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groundwire.domain import Judgement, Source
from groundwire.report import Report

_TEXTS = ("page_content", "content", "text", "long_text")
_METADATA = ("metadata", "meta")
_PLAIN = (str, int, float, bool)


def sources_of(documents: Any) -> list[str | Source | Mapping[str, Any]]:
    """Return documents of LangChain, LlamaIndex, Haystack or DSPy, texts, or sources, as sources of the library.

    Their ids, titles, URLs and file names are kept. Raises TypeError for an object without a text.
    """
    is_one = isinstance(documents, (str, Source, Mapping)) or _text(documents) is not None
    return [_source(each) for each in ([documents] if is_one else documents)]


def text_of(answer: Any) -> str:
    """Return the text of an answer: a string, a message with `content` or `text`, or a result with `response`.

    Raises TypeError for any other object.
    """
    if isinstance(answer, str):
        return answer
    for name in ("text", "content", "response"):
        if isinstance(found := getattr(answer, name, None), str):
            return found
    raise TypeError(f"an answer must be a text or a message, not {type(answer).__name__}")


def explain(report: Report) -> str:
    """Return the verdict and every claim that is not supported, with the reason and the closest evidence.

    If no claim was checked, return the warnings, too.
    """
    verdict = report.verdict.replace("_", " ")
    if report.score is None:
        return "\n  ".join([f"{verdict}: no claim was checked", *report.warnings])
    lines = [f"{verdict}: {report.score:.0%} of the checked claims are supported"]
    names = {source.id: source.name for source in report.sources}
    for choice in report.choices:
        for judgement in choice.judgements:
            if judgement.verdict.label in ("unsupported", "contradicted"):
                lines += _explained(judgement, names)
    return "\n".join(lines)


def _explained(judgement: Judgement, names: Mapping[str, str]) -> Iterator[str]:
    verdict = judgement.verdict
    yield f"  {verdict.label}: {judgement.claim.text}"
    yield f"    reason: {verdict.reason}"
    for citation in verdict.citations[:2]:
        yield f"    {names.get(citation.source, citation.source)}: {citation.text}"


def _source(document: Any) -> str | Source | Mapping[str, Any]:
    if isinstance(document, (str, Source, Mapping)):
        return document
    text = _text(document)
    if text is None:
        raise TypeError(f"a source must be a text or a document, not {type(document).__name__}")
    metadata = next((each for name in _METADATA if isinstance(each := getattr(document, name, None), Mapping)), {})
    id_ = getattr(document, "id", None) or getattr(document, "id_", None)
    plain = {str(name): value for name, value in metadata.items() if isinstance(value, _PLAIN)}
    return {"text": text, "metadata": plain} | ({"id": id_} if isinstance(id_, str) and id_ else {})


def _text(document: Any) -> str | None:
    """Return the text of a document, None for another object."""
    if callable(content := getattr(document, "get_content", None)):
        return str(content())
    return next((each for name in _TEXTS if isinstance(each := getattr(document, name, None), str)), None)
