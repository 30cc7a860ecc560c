"""What is reached without a model."""
