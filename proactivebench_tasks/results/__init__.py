"""From records to numbers."""
