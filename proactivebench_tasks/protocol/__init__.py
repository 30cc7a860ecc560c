"""What the benchmark fixes: samples, wording, sample ids."""
