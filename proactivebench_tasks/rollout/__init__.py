"""Many episodes at once, one turn of each a call."""
