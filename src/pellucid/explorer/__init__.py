"""Walks through the input space of a model: inside an equivalence class, out of it, towards one."""
