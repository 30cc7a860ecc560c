"""Tiny models in the Hugging Face layout, made on the spot and offline: real wrappers load them.

Their weights are random but for the last layer, which can only name a letter from A to D and then
end: so answers are options of a list, they depend on the image, and episodes go on for a while.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
)

LETTERS = "ABCD"
SEED = 2  # of those tried, the one whose answers are spread most evenly
HIDDEN = 64
PATCH = 14  # pixels; what qwen_vl_utils resizes for
SIDE = 56  # pixels of the LLaVA's image

# A chat in plain words: who speaks, then what. `{image}` stands for an image.
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} says: "
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{image}{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant says: {% endif %}"
)
# What the vocabulary is made from: words that questions of this kind are made of.
_WORDS = (
    "what is the this that picture thing object sample image you can look tell show wait move "
    "left right rewind video camera blocks reply with any of these letter your pick and nothing "
    "else. an apple. a boat. a cup. a dog. I cannot see enough to answer another view user "
    "assistant says: A. B. C. D. E. F. G. H. Move Show Wait Reply What Raise Add details."
)


def llava(folder: Path) -> Path:
    """Save a LLaVA in ``folder``; returns the folder."""
    tokenizer = _tokenizer(["<image>"])
    torch.manual_seed(SEED)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=SIDE,
            patch_size=PATCH,
        ),
        text_config=LlamaConfig(num_key_value_heads=4, **_text_layers(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=(SIDE // PATCH) ** 2,
    )
    processor = LlavaProcessor(
        CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_TEMPLATE.replace("{image}", "<image>"),
    )
    return _save(folder, LlavaForConditionalGeneration(config), processor, tokenizer)


def qwen2_5_vl(folder: Path, layers: int = 2) -> Path:
    """Save a Qwen2.5-VL with this many layers of text in ``folder``; returns the folder."""
    image = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
    tokenizer = _tokenizer([*image, "<|video_pad|>"])
    torch.manual_seed(SEED)
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": PATCH,
            "out_hidden_size": HIDDEN,
            "fullatt_block_indexes": [0],
        },
        text_config={
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]},
            **_text_layers(tokenizer, layers),
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    )
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(patch_size=PATCH),
        tokenizer,
        Qwen2VLVideoProcessor(patch_size=PATCH),
        chat_template=_TEMPLATE.replace("{image}", "".join(image)),
    )
    return _save(folder, Qwen2_5_VLForConditionalGeneration(config), processor, tokenizer)


def _tokenizer(placeholders: list[str]) -> PreTrainedTokenizerFast:
    """Bytes and a few merges of them: every text has tokens, and every letter is one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<pad>", "<end>", *placeholders],
        show_progress=False,
    )
    tokenizer.train_from_iterator([_WORDS] * 2, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        extra_special_tokens=placeholders,
    )


def _text_layers(tokenizer: PreTrainedTokenizerFast, count: int = 2) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 128,
        "num_hidden_layers": count,
        "num_attention_heads": 4,
        "max_position_embeddings": 4096,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,  # wide: two layers must make the image felt
    }


@torch.no_grad()
def _save(
    folder: Path, model: PreTrainedModel, processor: object, tokenizer: PreTrainedTokenizerFast
) -> Path:
    letters = tokenizer.convert_tokens_to_ids(list(LETTERS))
    # Letters come in pairs that read one axis of the hidden state with opposite signs, so that one
    # of them always beats the rest of the vocabulary, which reads nothing.
    head = torch.zeros_like(model.lm_head.weight)
    for pair in range(len(letters) // 2):
        head[letters[2 * pair], 1 + pair] = 1.0
        head[letters[2 * pair + 1], 1 + pair] = -1.0
    # Axis 0 says that a letter was just said. No layer writes it, and the end reads it.
    head[tokenizer.eos_token_id, 0] = 1.0
    model.lm_head.weight.copy_(head)
    embedding = model.get_input_embeddings().weight
    embedding[:, 0] = 0.0
    embedding[letters, 0] = 64.0
    for layer in model.model.language_model.layers:
        layer.self_attn.o_proj.weight[0] = 0.0
        layer.mlp.down_proj.weight[0] = 0.0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
