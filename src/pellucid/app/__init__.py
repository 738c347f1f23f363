"""`pellucid app`: explain, explore, compare and ask "what if" in a browser, without a network.

Everything but the layout is a plain function of a model and an input; gradio is imported where a
page is laid out, and nowhere else.
"""
