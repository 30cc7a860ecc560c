"""A tiny causal language model, made by the test, whose next word depends on the last word alone.

Each word is a token. Its embedding is one-hot, the transformer layers add nothing to it, and the
output layer maps each word to the word that follows. So a test knows what the model says, even
when it samples. It says this only if the last token that it is shown is the last word of the
prompt: with padding on the wrong side, the last token would be padding.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# The prompt ends with the last word of the user's message. Thinking must be on.
_TEMPLATE = (
    "{% if enable_thinking is defined and not enable_thinking %}"
    "{{ raise_exception('thinking is off') }}{% endif %}"
    "{% for message in messages %}{{ message['content'] }} {% endfor %}"
)


def parrot(folder: Path, says: Mapping[str, str]) -> Path:
    """Save a model that answers a prompt whose last word is a key of ``says`` with the key's value.

    No word may be in two values, nor twice in one, unless the same word follows each time.
    """
    words = ["<pad>", "<end>", "<unk>"]
    follows: dict[str, str] = {"<pad>": "<pad>"}
    for last, answer in says.items():
        chain = [last, *answer.split()]
        words += [word for word in chain if word not in words]
        for word, successor in zip(chain, [*chain[1:], "<end>"], strict=True):
            assert follows.setdefault(word, successor) == successor, f"{word!r} has two successors"
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        unk_token="<unk>",
        chat_template=_TEMPLATE,
    )
    size = -(-len(words) // 8) * 8
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size,
            hidden_size=size,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            bos_token_id=None,
            eos_token_id=1,
            pad_token_id=0,
        )
    )
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        head = torch.zeros(size, size)
        for word, successor in follows.items():
            head[words.index(successor), words.index(word)] = 50.0
        model.lm_head.weight.copy_(head)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
