"""Kinds of studies: each says what its units are and how one is done."""
