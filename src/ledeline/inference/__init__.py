"""Text in, headlines out, with their attribution."""
