"""Why a headline came out as it did: odd generation, and which source word became which."""
