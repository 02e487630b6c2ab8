"""Model folders: how weights and what describes them lie on disk."""
