"""What this package changes inside lmms-eval, one module a change. Each says when it can go."""
