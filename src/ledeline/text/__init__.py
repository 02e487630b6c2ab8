"""Text as words and sub-words: profiles, byte-pair encoding, function words."""
