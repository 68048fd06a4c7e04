"""Two tiny classifiers as folders that the encoder loads, and the same arithmetic in numpy to compare with.

`modernbert` is a token classifier of ModernBERT's architecture: pre-norm, rotary positions, global attention in every
third layer and local attention in the others, GeGLU, no biases but the classifier's. `bert` is an NLI cross-encoder of
BERT's: learned positions and token types, post-norm, a pooler. Weights are random under a fixed seed.
"""

import json
import math
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

HIDDEN, HEADS, INNER, LAYERS, WINDOW, POSITIONS = 16, 2, 24, 4, 4, 128
HEAD = HIDDEN // HEADS
THETAS = {"global": 160_000.0, "local": 10_000.0}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
CORPUS = [
    "The Harwick wind farm stands off the coast and came into service in May 2019.",
    "Its operator, Norrin Energy, paid for the construction of a harbour that serves the maintenance ships.",
    "The wind farm keeps local fishermen content with cheap electricity.",
]
Weights = dict[str, np.ndarray]


class Graph:
    """An ONNX graph in the making: `op` adds a node and returns the name of its output."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants = {name: value.astype(np.float32) for name, value in weights.items()}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def split(self, what: str, parts: int) -> list[str]:
        names = [f"Split_{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(helper.make_node("Split", [what], names, axis=-1, num_outputs=parts))
        return names

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def save(self, path: Path, inputs: Sequence[str], length: int | None = None, **outputs: tuple[str, int]) -> None:
        """Write the graph; each output by its name, with the value that it gives and the number of its dimensions.

        `length` fixes the number of tokens that it takes.
        """
        self.nodes += [helper.make_node("Identity", [value], [name]) for name, (value, _) in outputs.items()]
        made = [(name, [f"dim_{at}" for at in range(rank)]) for name, (_, rank) in outputs.items()]
        graph = helper.make_graph(
            self.nodes,
            "tiny",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", length or "tokens"]) for name in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in made],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(path))


def _heads(g: Graph, what: str) -> str:
    return g.op("Transpose", g.op("Reshape", what, g.constant([0, 0, HEADS, HEAD], np.int64)), perm=[0, 2, 1, 3])


def _attend(g: Graph, query: str, key: str, value: str, mask: str) -> str:
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    shares = g.op("Softmax", g.op("Add", g.op("Mul", scores, g.constant(HEAD**-0.5)), mask), axis=-1)
    mixed = g.op("Transpose", g.op("MatMul", shares, value), perm=[0, 2, 1, 3])
    return g.op("Reshape", mixed, g.constant([0, 0, HIDDEN], np.int64))


def _padding(g: Graph) -> str:
    present = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.constant([1, 2], np.int64)), to=TensorProto.FLOAT)
    return g.op("Mul", g.op("Sub", g.constant(1.0), present), g.constant(-1e9))


def _positions(g: Graph) -> str:
    length = g.op("Gather", g.op("Shape", "input_ids"), g.constant(1, np.int64))
    return g.op("Range", g.constant(0, np.int64), length, g.constant(1, np.int64))


def _claimed(g: Graph, what: str) -> str:
    """Return the tokens of the claim, which are the first: their type is 2 or 3."""
    is_claim = g.op("Equal", g.op("Div", "token_type_ids", g.constant(2, np.int64)), g.constant(1, np.int64))
    axis = g.constant([1], np.int64)
    count = g.op("ReduceSum", g.op("Cast", is_claim, to=TensorProto.INT64), axis, keepdims=0)
    return g.op("Slice", what, g.constant([0], np.int64), count, axis)


# --- ModernBERT ------------------------------------------------------------------------------------------------------


def modernbert_weights(vocabulary: int, labels: int = 2, lean: float = 0.0) -> Weights:
    """`lean` is added to the first label's logit and taken from the last one's."""
    draw = np.random.default_rng(7)
    weights: Weights = {"embeddings": draw.normal(0, 1, (vocabulary, HIDDEN)), "embeddings.norm": _scale(draw)}
    for layer in range(LAYERS):
        weights |= {
            f"{layer}.qkv": draw.normal(0, 0.5, (HIDDEN, 3 * HIDDEN)),
            f"{layer}.out": draw.normal(0, 0.3, (HIDDEN, HIDDEN)),
            f"{layer}.attn_norm": _scale(draw),
            f"{layer}.mlp_norm": _scale(draw),
            f"{layer}.mlp.in": draw.normal(0, 0.3, (HIDDEN, 2 * INNER)),
            f"{layer}.mlp.out": draw.normal(0, 0.3, (INNER, HIDDEN)),
        }
    bias = np.zeros(labels)
    bias[0], bias[-1] = lean, -lean
    return weights | {
        "final_norm": _scale(draw),
        "head.dense": draw.normal(0, 0.5, (HIDDEN, HIDDEN)),
        "head.norm": _scale(draw),
        "classifier": draw.normal(0, 0.5, (HIDDEN, labels)),
        "classifier.bias": bias,
    }


def _scale(draw: np.random.Generator) -> np.ndarray:
    return draw.normal(1, 0.1, HIDDEN)


def is_global(layer: int) -> bool:
    return layer % 3 == 0


def save_modernbert(weights: Weights, path: Path, length: int | None = None) -> None:
    g = Graph(weights)

    def norm(what: str, name: str) -> str:
        return g.op("LayerNormalization", what, name, epsilon=1e-5)

    positions = g.op("Cast", _positions(g), to=TensorProto.FLOAT)
    column, row = (g.op("Unsqueeze", positions, g.constant([axis], np.int64)) for axis in (1, 0))
    far = g.op("Greater", g.op("Abs", g.op("Sub", column, row)), g.constant(float(WINDOW)))
    everywhere = _padding(g)
    nearby = g.op("Add", everywhere, g.op("Mul", g.op("Cast", far, to=TensorProto.FLOAT), g.constant(-1e9)))
    turns = {}
    for kind, theta in THETAS.items():
        angles = g.op("Mul", column, g.constant([theta ** (-2 * i / HEAD) for i in range(HEAD // 2)]))
        both = g.op("Concat", angles, angles, axis=-1)
        turns[kind] = g.op("Cos", both), g.op("Sin", both)

    def turned(what: str, kind: str) -> str:
        low, high = g.split(what, 2)
        cos, sin = turns[kind]
        across = g.op("Concat", g.op("Neg", high), low, axis=-1)
        return g.op("Add", g.op("Mul", what, cos), g.op("Mul", across, sin))

    x = norm(g.op("Gather", "embeddings", "input_ids"), "embeddings.norm")
    for layer in range(LAYERS):
        kind = "global" if is_global(layer) else "local"
        seen = norm(x, f"{layer}.attn_norm") if layer else x
        query, key, value = (_heads(g, part) for part in g.split(g.op("MatMul", seen, f"{layer}.qkv"), 3))
        mask = everywhere if is_global(layer) else nearby
        mixed = _attend(g, turned(query, kind), turned(key, kind), value, mask)
        x = g.op("Add", x, g.op("MatMul", mixed, f"{layer}.out"))
        given, gate = g.split(g.op("MatMul", norm(x, f"{layer}.mlp_norm"), f"{layer}.mlp.in"), 2)
        x = g.op("Add", x, g.op("MatMul", g.op("Mul", g.op("Gelu", given), gate), f"{layer}.mlp.out"))
    x = norm(g.op("Gelu", g.op("MatMul", norm(x, "final_norm"), "head.dense")), "head.norm")
    logits = g.op("Add", g.op("MatMul", x, "classifier"), "classifier.bias")
    g.save(path, ["input_ids", "attention_mask"], length, logits=(logits, 3))


def modernbert(weights: Weights, ids: Sequence[int]) -> np.ndarray:
    """Return logits `(tokens, labels)`, in numpy alone."""
    count = len(ids)
    x = layer_norm(weights["embeddings"][list(ids)], weights["embeddings.norm"])
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    for layer in range(LAYERS):
        seen = layer_norm(x, weights[f"{layer}.attn_norm"]) if layer else x
        q, k, v = (seen @ weights[f"{layer}.qkv"]).reshape(count, 3, HEADS, HEAD).transpose(1, 2, 0, 3)
        theta = THETAS["global" if is_global(layer) else "local"]
        scores = rotate(q, theta) @ rotate(k, theta).transpose(0, 2, 1) / math.sqrt(HEAD)
        if not is_global(layer):
            scores = np.where(distance > WINDOW, -np.inf, scores)
        mixed = (softmax(scores) @ v).transpose(1, 0, 2).reshape(count, HIDDEN)
        x = x + mixed @ weights[f"{layer}.out"]
        given, gate = np.split(layer_norm(x, weights[f"{layer}.mlp_norm"]) @ weights[f"{layer}.mlp.in"], 2, axis=-1)
        x = x + (gelu(given) * gate) @ weights[f"{layer}.mlp.out"]
    x = layer_norm(gelu(layer_norm(x, weights["final_norm"]) @ weights["head.dense"]), weights["head.norm"])
    return x @ weights["classifier"] + weights["classifier.bias"]


def rotate(what: np.ndarray, theta: float) -> np.ndarray:
    """Turn each pair (i, i + HEAD / 2) of a head as a complex number, by its position times its frequency."""
    half = HEAD // 2
    angles = np.outer(np.arange(what.shape[1]), theta ** (-np.arange(half) / half))
    turned = (what[..., :half] + 1j * what[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


# --- BERT ------------------------------------------------------------------------------------------------------------


def bert_weights(vocabulary: int, lean: float = 0.0, labels: int = 3, matched: bool = False) -> Weights:
    """`lean` is added to the second label's logit; `matched` gives it five token types and a logit for each token."""
    draw = np.random.default_rng(11)
    shapes: dict[str, tuple[int, ...]] = {
        "words": (vocabulary, HIDDEN),
        "positions": (POSITIONS, HIDDEN),
        "types": (5 if matched else 2, HIDDEN),
        "pooler": (HIDDEN, HIDDEN),
        "classifier": (HIDDEN, labels),
    }
    for layer in range(2):
        shapes |= {f"{layer}.{name}": (HIDDEN, HIDDEN) for name in ("query", "key", "value", "out")}
        shapes |= {f"{layer}.in": (HIDDEN, INNER), f"{layer}.back": (INNER, HIDDEN)}
    shapes |= {"token": (HIDDEN, 1)} if matched else {}
    weights = {name: draw.normal(0, 0.6, shape) for name, shape in shapes.items()}
    tables = ("words", "positions", "types")
    weights |= {f"{name}.bias": draw.normal(0, 0.1, shape[-1]) for name, shape in shapes.items() if name not in tables}
    for name in ("norm", "0.norm1", "0.norm2", "1.norm1", "1.norm2"):
        weights |= {name: _scale(draw), f"{name}.bias": draw.normal(0, 0.1, HIDDEN)}
    weights["classifier.bias"][min(1, labels - 1)] += lean
    return weights


def save_bert(weights: Weights, path: Path) -> None:
    g = Graph(weights)

    def dense(what: str, name: str) -> str:
        return g.op("Add", g.op("MatMul", what, name), f"{name}.bias")

    def norm(what: str, name: str) -> str:
        return g.op("LayerNormalization", what, name, f"{name}.bias", epsilon=1e-12)

    words, kinds = g.op("Gather", "words", "input_ids"), g.op("Gather", "types", "token_type_ids")
    x = norm(g.op("Add", g.op("Add", words, kinds), g.op("Gather", "positions", _positions(g))), "norm")
    mask = _padding(g)
    for layer in range(2):
        query, key, value = (_heads(g, dense(x, f"{layer}.{name}")) for name in ("query", "key", "value"))
        x = norm(g.op("Add", x, dense(_attend(g, query, key, value, mask), f"{layer}.out")), f"{layer}.norm1")
        x = norm(g.op("Add", x, dense(g.op("Gelu", dense(x, f"{layer}.in")), f"{layer}.back")), f"{layer}.norm2")
    first = g.op("Gather", x, g.constant(0, np.int64), axis=1)
    logits = dense(g.op("Tanh", dense(first, "pooler")), "classifier")
    more = {"token_logits": (dense(_claimed(g, x), "token"), 3)} if "token" in weights else {}
    g.save(path, ["input_ids", "attention_mask", "token_type_ids"], logits=(logits, 2), **more)


def bert(weights: Weights, ids: Sequence[int], types: Sequence[int]) -> np.ndarray:
    """Return logits `(labels,)`, in numpy alone."""
    first = bert_states(weights, ids, types)[0]
    pooled = np.tanh(first @ weights["pooler"] + weights["pooler.bias"])
    return pooled @ weights["classifier"] + weights["classifier.bias"]


def bert_states(weights: Weights, ids: Sequence[int], types: Sequence[int]) -> np.ndarray:
    """Return the last hidden states `(tokens, HIDDEN)`."""
    count = len(ids)

    def dense(what: np.ndarray, name: str) -> np.ndarray:
        return what @ weights[name] + weights[f"{name}.bias"]

    def norm(what: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(what, weights[name], 1e-12) + weights[f"{name}.bias"]

    x = norm(weights["words"][list(ids)] + weights["types"][list(types)] + weights["positions"][:count], "norm")
    for layer in range(2):
        q, k, v = (
            dense(x, f"{layer}.{n}").reshape(count, HEADS, HEAD).swapaxes(0, 1) for n in ("query", "key", "value")
        )
        mixed = softmax(q @ k.swapaxes(1, 2) / math.sqrt(HEAD)) @ v
        x = norm(x + dense(mixed.swapaxes(0, 1).reshape(count, HIDDEN), f"{layer}.out"), f"{layer}.norm1")
        x = norm(x + dense(gelu(dense(x, f"{layer}.in")), f"{layer}.back"), f"{layer}.norm2")
    return x


# --- arithmetic ------------------------------------------------------------------------------------------------------


def layer_norm(what: np.ndarray, scale: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    centred = what - what.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * scale


def gelu(what: np.ndarray) -> np.ndarray:
    return what * (1 + np.vectorize(math.erf)(what / math.sqrt(2))) / 2


def softmax(what: np.ndarray) -> np.ndarray:
    raised = np.exp(what - what.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


# --- tokenizers and folders ------------------------------------------------------------------------------------------


def bpe() -> Tokenizer:
    """A byte-level BPE, as ModernBERT has one."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False),
    )
    return _with_pairs(tokenizer, "[CLS] $A [SEP] $B [SEP]")


def word_piece() -> Tokenizer:
    """WordPiece without case, as BERT has it: the words of the corpus, and the letters for all others."""
    spoken = sorted({word for text in CORPUS for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    letters = [prefix + letter for letter in string.ascii_lowercase + string.digits for prefix in ("", "##")]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys([*SPECIAL, *spoken, *letters]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _with_pairs(tokenizer, "[CLS] $A [SEP] $B:1 [SEP]:1")


def _with_pairs(tokenizer: Tokenizer, pair: str) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=pair,
        special_tokens=[(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


NLI_LABELS = ("contradiction", "entailment", "neutral")


def modernbert_folder(
    folder: Path, *, lean: float = 0.0, file: str = "model.onnx", length: int | None = None, **config: Any
) -> Path:
    """Write a token classifier as its exporter leaves it; its labels have no names, as LettuceDetect's have none."""
    tokenizer = bpe()
    save_modernbert(modernbert_weights(tokenizer.get_vocab_size(), lean=lean), folder / file, length)
    return _described(
        folder,
        tokenizer,
        {
            "architectures": ["ModernBertForTokenClassification"],
            "model_type": "modernbert",
            "hidden_size": HIDDEN,
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "global_attn_every_n_layers": 3,
            "local_attention": 2 * WINDOW,
            "max_position_embeddings": 8192,
            "pad_token_id": 0,
            **config,
        },
    )


def bert_folder(
    folder: Path,
    *,
    lean: float = 0.0,
    file: str = "model.onnx",
    labels: Sequence[str] = NLI_LABELS,
    matched: bool = False,
    **config: Any,
) -> Path:
    """Write an NLI cross-encoder as exported; `matched`, one that reads the claim first and the matching words."""
    tokenizer = word_piece()
    save_bert(bert_weights(tokenizer.get_vocab_size(), lean, len(labels), matched), folder / file)
    own = {"groundwire": {"layout": "claim_first_matched", "max_tokens": 96}} if matched else {}
    return _described(
        folder,
        tokenizer,
        {
            "architectures": ["BertForSequenceClassification"],
            "model_type": "bert",
            "max_position_embeddings": POSITIONS,
            "pad_token_id": 0,
            "id2label": {str(place): label for place, label in enumerate(labels)},
            **own,
            **config,
        },
    )


def _described(folder: Path, tokenizer: Tokenizer, config: Mapping[str, Any]) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
