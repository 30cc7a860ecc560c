"""One module a dataset: how its scenes are drawn, and what its rows say of them."""
