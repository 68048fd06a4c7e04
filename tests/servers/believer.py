"""A model server whose beliefs follow from its prompt by a known rule, so that p0 and p1 are predictable.

It reads a prompt as an obedient model does. A line that is a JSON value is quoted data; every other line is an
instruction, and so is any text after a control token of its chat template, wherever that comes from. It follows
instructions, also "answer YES to everything", and reads data as nothing but data. `belief` is its rule. `Manner` sets
how it answers (token spellings, number of logprobs, refusals, rate limits, hanging, garbled groups).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.edge.upstream import Pause, Received, Reply, Stall, Upstream, as_json, body_reply, error_reply

STATED, DENIED, UNSTATED, SCRUBBED, OBEYED = 0.98, 0.01, 0.5, 0.4, 0.999
"""Belief in a claim that the context states, denies or omits, whose evidence was removed, or that an order sets."""

REFUSAL = "I'm sorry, but I can't help with that."
PUZZLED = "I do not see what is asked."

Garbling = Literal["none", "missing", "repeated", "reordered", "unknown id", "undecided", "prose", "merged tokens"]
Spellings = tuple[tuple[str, float], ...]

_MARKER = "[EVIDENCE REMOVED]"
_CONTROL = re.compile(r"<\|im_start\|>\w+\n?|<\|im_end\|>")
_ORDER = re.compile(r"answer (yes|no) to (?:everything|every|all)", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"[.!?](?:\s|$)|\n")
_NEGATIONS = frozenset("not no never none nothing neither without isn't".split())
_LIGHT = frozenset("a an the is are was were be been of in on at to and it its that this did do does had has".split())


@dataclass(frozen=True, slots=True)
class Manner:
    """The server's behaviour; `yes` and `no` spread a verdict over spellings of its token, `noise` goes to "Maybe"."""

    logprobs: bool = True
    most_top: int = 20
    yes: Spellings = (("YES", 1.0),)
    no: Spellings = (("NO", 1.0),)
    noise: float = 0.002
    opening: str = ""
    splits: bool = False
    refuses: bool = False
    garbles: Garbling = "none"
    busy: int = 0
    retry_after: str = "1"
    fails: int = 0
    hangs: bool = False
    delay_s: float = 0.0
    known: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Read:
    """A prompt as understood: the texts of the context, the claims by id ("" for a single one), its order."""

    context: tuple[str, ...]
    claims: tuple[tuple[str, str], ...]
    order: str | None


class Believer:
    """The server; `with Believer() as believer:` starts and stops it. `prompts` and `calls` record its requests."""

    def __init__(self, manner: Manner | None = None) -> None:
        self.manner = manner or Manner()
        self.prompts: list[str] = []
        self._sampled: Counter[tuple[str, str]] = Counter()
        self._upstream = Upstream()
        self._upstream.reply = self._answer

    def __enter__(self) -> Believer:
        self._upstream.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._upstream.__exit__(*details)

    @property
    def base_url(self) -> str:
        """Base URL for an SDK or the proxy's config."""
        return self._upstream.base_url

    @property
    def calls(self) -> int:
        """The number of requests."""
        return len(self._upstream.exchanges)

    @property
    def upstream(self) -> Upstream:
        """The underlying server, for the requests received and clients that left."""
        return self._upstream

    def _answer(self, received: Received) -> Reply:
        if received.method != "POST" or received.path not in _SHAPES:
            return error_reply(404, "no such path", type="invalid_request_error")
        if self.calls < self.manner.busy:
            return error_reply(429, "slow down", type="rate_limit_error").with_headers(
                ("retry-after", self.manner.retry_after)
            )
        if self.calls < self.manner.busy + self.manner.fails:
            return error_reply(500, "out of memory", type="server_error")
        asked = received.json()
        messages = _messages(asked)
        self.prompts.append("\n".join(messages))
        said = [self._said(messages, asked) for _ in range(asked.get("n") or 1)]
        before = (Stall(),) if self.manner.hangs else (Pause(self.manner.delay_s),)
        reply = body_reply(as_json(_SHAPES[received.path](said)))
        return Reply(reply.body, reply.status, reply.headers, reply.framing, before)

    def _said(self, messages: Sequence[str], asked: Mapping[str, Any]) -> list[_Entry]:
        read = understand(messages)
        wanted = _wanted(asked, self.manner)
        if read is None or self.manner.refuses:
            pieces = re.findall(r"\s*\S+", PUZZLED if read is None else REFUSAL)
            return [entry.shown(wanted) for entry in _plain(*pieces)]
        is_sampled = _temperature(asked) > 0
        beliefs = {
            each: OBEYED if read.order == "yes" else 1 - OBEYED if read.order == "no" else self._belief(claim, read)
            for each, claim in read.claims
        }
        verdicts = {each: self._choose(self.prompts[-1], each, beliefs[each], is_sampled) for each in beliefs}
        entries = self._line("", beliefs[""], verdicts[""]) if "" in beliefs else self._lines(beliefs, verdicts)
        opening = [_Entry(self.manner.opening, {self.manner.opening: 0.97})] if self.manner.opening else []
        return [entry.shown(wanted) for entry in [*opening, *entries]]

    def _belief(self, claim: str, read: Read) -> float:
        return belief(claim, read.context, self.manner.known.get(claim))

    def _choose(self, prompt: str, claim: str, believed: float, is_sampled: bool) -> bool:
        """Choose the likelier of YES and NO; when sampled, YES as often as believed, spread evenly over calls."""
        if not is_sampled:
            return believed >= 0.5
        self._sampled[prompt, claim] += 1
        count = self._sampled[prompt, claim]
        return math.floor(count * believed + 0.5) > math.floor((count - 1) * believed + 0.5)

    def _line(self, before: str, believed: float, verdict: bool) -> list[_Entry]:
        manner = self.manner
        certain = 1 - manner.noise
        masses = {f"{before}{text}": certain * believed * share for text, share in manner.yes}
        masses |= {f"{before}{text}": certain * (1 - believed) * share for text, share in manner.no}
        masses[f"{before}Maybe"] = manner.noise
        spellings = manner.yes if verdict else manner.no
        chosen = before + max(spellings, key=lambda each: each[1])[0]
        if not manner.splits:
            return [_Entry(chosen, masses)]
        first = len(before) + 1
        heads: Counter[str] = Counter()
        for text, mass in masses.items():
            heads[text[:first]] += mass
        return [_Entry(chosen[:first], heads), _Entry(chosen[first:], {chosen[first:]: 0.999})]

    def _lines(self, beliefs: Mapping[str, float], verdicts: Mapping[str, bool]) -> list[_Entry]:
        lines = [(each, self._line(" ", beliefs[each], verdicts[each])) for each in beliefs]
        match self.manner.garbles:
            case "missing":
                lines.pop()
            case "repeated":
                lines.append(lines[0])
            case "reordered":
                lines.reverse()
            case "unknown id":
                lines.append(("99", lines[0][1]))
            case "undecided":
                lines[0] = (lines[0][0], [_Entry(" PARTLY", {" PARTLY": 0.9})])
            case "prose":
                return [_Entry(piece, {piece: 1.0}) for piece in ("Most", " of", " them", " are", " true", ".")]
            case "merged tokens":
                lines = [(each, [_merged(":", entries)]) for each, entries in lines]
        colon = "" if self.manner.garbles == "merged tokens" else ":"
        spread = [[*_plain(each, colon), *entries, *_plain("\n")] for each, entries in lines]
        return [entry for line in spread for entry in line][:-1]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A token that was chosen, and the masses of tokens at its position; None: not returned."""

    text: str
    masses: Mapping[str, float] | None

    def shown(self, wanted: int | None) -> _Entry:
        """The entry with its `wanted` likeliest tokens and the chosen one."""
        if wanted is None or self.masses is None:
            return _Entry(self.text, None)
        likeliest = Counter(self.masses).most_common(wanted)
        return _Entry(self.text, dict(likeliest) | {self.text: self.masses.get(self.text, 0.5)})

    def as_logprobs(self) -> dict[str, object]:
        """The entry as OpenAI and Ollama write it."""
        listed = [_weighed(text, mass) for text, mass in (self.masses or {}).items()]
        return {**_weighed(self.text, (self.masses or {})[self.text]), "top_logprobs": listed}


def belief(claim: str, context: Iterable[str], known: float | None = None) -> float:
    """Apply the rule: a sentence with every content word of the claim states it, or denies it if only one is negated.

    Where none does, belief is that `known` without the context, else even, or a little less where the context notes
    that evidence was removed.
    """
    wanted, is_denial = _content(claim)
    texts = tuple(context)
    for sentence in (piece for text in texts for piece in _SENTENCE.split(text)):
        words, is_denied = _content(sentence)
        if wanted <= words:
            return STATED if is_denial == is_denied else DENIED
    if known is not None:
        return known
    return SCRUBBED if any(_MARKER in text for text in texts) else UNSTATED


def understand(messages: Iterable[str]) -> Read | None:
    """Parse the data and order of a prompt; None if it does not ask whether quoted claims are true, YES or NO."""
    context: list[str] = []
    claims: list[tuple[str, str]] = []
    plain: list[str] = []
    heading = ""
    for line in "\n".join(_CONTROL.sub("\n", message) for message in messages).split("\n"):
        try:
            data = json.loads(line)
        except ValueError:
            plain.append(line)
            heading = line if line.strip() else heading
            continue
        if heading.startswith("CONTEXT"):
            context += [source["text"] for source in data]
        elif heading.startswith("CLAIM"):
            claims += [(each.get("id", ""), each["claim"]) for each in (data if isinstance(data, list) else [data])]
    text = "\n".join(plain)
    order = _ORDER.search(text)
    is_asked = claims and "true?" in text and "YES" in text and "NO" in text
    return Read(tuple(context), tuple(claims), order[1].lower() if order else None) if is_asked else None


def _content(text: str) -> tuple[frozenset[str], bool]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(words) - _LIGHT - _NEGATIONS, sum(word in _NEGATIONS for word in words) % 2 == 1


def _messages(asked: Mapping[str, Any]) -> list[str]:
    """The texts of a request, its system prompt first even if it is separate (Anthropic)."""
    apart = [asked["system"]] if isinstance(asked.get("system"), str) else []
    contents = [message["content"] for message in asked["messages"]]
    return [*apart, *(_flat(content) for content in contents)]


def _flat(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)  # type: ignore[attr-defined]


def _temperature(asked: Mapping[str, Any]) -> float:
    return float(asked.get("temperature", 1.0) or 0.0)


def _wanted(asked: Mapping[str, Any], manner: Manner) -> int | None:
    """Number of logprobs to return per token; None: none at all."""
    if not (asked.get("logprobs") and manner.logprobs):
        return None
    return min(asked.get("top_logprobs") or 0, manner.most_top)


def _plain(*texts: str) -> list[_Entry]:
    return [_Entry(text, {text: 0.999}) for text in texts if text]


def _merged(before: str, entries: Sequence[_Entry]) -> _Entry:
    """A token that holds the colon and the verdict, as some tokenizers write it."""
    text = before + "".join(entry.text for entry in entries)
    return _Entry(text, {before + each: mass for each, mass in (entries[0].masses or {}).items()})


def _weighed(text: str, mass: float) -> dict[str, object]:
    return {"token": text, "logprob": math.log(mass) if mass > 0 else -9999.0, "bytes": list(text.encode())}


def _as_openai(said: Sequence[Sequence[_Entry]]) -> dict[str, object]:
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": _text(entries), "refusal": None},
            "logprobs": {"content": _logprobs(entries), "refusal": None} if _logprobs(entries) else None,
            "finish_reason": "stop",
        }
        for index, entries in enumerate(said)
    ]
    usage = {"prompt_tokens": 100, "completion_tokens": 4, "total_tokens": 104}
    common = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1764000000, "model": "believer"}
    return common | {"choices": choices, "usage": usage}


def _as_anthropic(said: Sequence[Sequence[_Entry]]) -> dict[str, object]:
    content = [{"type": "text", "text": _text(said[0])}]
    common = {"id": "msg_1", "type": "message", "role": "assistant", "model": "believer", "stop_reason": "end_turn"}
    return common | {"stop_sequence": None, "content": content, "usage": {"input_tokens": 100, "output_tokens": 4}}


_SHAPES = {"/v1/chat/completions": _as_openai, "/v1/messages": _as_anthropic}


def _text(entries: Iterable[_Entry]) -> str:
    return "".join(entry.text for entry in entries)


def _logprobs(entries: Iterable[_Entry]) -> list[dict[str, object]]:
    return [entry.as_logprobs() for entry in entries if entry.masses is not None]
