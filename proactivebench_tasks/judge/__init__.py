"""The judge of open-ended generation: a language model marks which valid answers a text makes."""
