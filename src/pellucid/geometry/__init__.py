"""The geometry that a model puts on its inputs: linear maps that are never written down."""
