"""A language model of a few thousand random weights as a GGUF file, which answers YES or NO and stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

EMBEDDING, HEADS, FORWARD, CONTEXT = 32, 2, 64, 8192
YES_OVER_NO = 1.0  # by how much its logit of YES exceeds that of NO, for any prompt
TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"

_SPECIAL = ["<unk>", "<s>", "</s>"]
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_WORDS = ["YES", "NO", "▁YES", "▁NO"]


def write_model(gguf: Any, path: Path) -> None:
    """Write the model with the `gguf` library: random but for the rows that make it answer, and then end."""
    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * len(_WORDS)]
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in _tensors(random, tokens).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(random: np.random.Generator, tokens: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    def noise(*shape: int) -> np.ndarray[Any, Any]:
        return random.normal(0.0, 0.01, shape)

    words = [tokens.index(word) for word in _WORDS]
    embedding, output = noise(len(tokens), EMBEDDING), noise(len(tokens), EMBEDDING)
    embedding[:, 0] = 1.0  # every token leads to a verdict …
    embedding[words, 0], embedding[words, 1] = 0.0, 1.0  # … but a verdict leads to the end
    scale = 1.0 / np.sqrt(EMBEDDING)  # inverse of the norm's factor for a unit vector before the output
    output[tokens.index("YES"), 0] = (20.0 + YES_OVER_NO) * scale
    output[tokens.index("NO"), 0] = 20.0 * scale
    output[tokens.index("</s>"), 1] = 30.0 * scale
    square = {f"blk.0.attn_{name}.weight": noise(EMBEDDING, EMBEDDING) for name in ("q", "k", "v", "output")}
    wide = {f"blk.0.ffn_{name}.weight": noise(FORWARD, EMBEDDING) for name in ("gate", "up")}
    norms = {
        name: np.ones(EMBEDDING) for name in ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight")
    }
    return {
        "token_embd.weight": embedding,
        "output.weight": output,
        "blk.0.ffn_down.weight": noise(EMBEDDING, FORWARD),
        **square,
        **wide,
        **norms,
    }
