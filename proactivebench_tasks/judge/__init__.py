"""The judge of open-ended generation: given a model's free text, which of the valid answers does
the text make? The judge of the published evaluation is a language model, Qwen3-8B."""
