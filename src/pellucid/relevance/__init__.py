"""Relevance propagation on any model, by other rules for going back through its arithmetic.

    rules: GradientRules (AttnLRP, CP-LRP, conservative)  or  DeepTaylor (the alpha-beta family)
                                       |
    model's forward pass --> RuleWatch: what kind of operation is this?   (operations.py)
                                       |
              the same numbers, bit for bit, and the rule as their way back (an autograd function)
                                       |
    autograd.grad(target, state) --> what the rules send back to that state

The watch is a `TorchFunctionMode`: it sees every operation of the model in this thread, as long as
its `with` block lasts, and edits neither modules nor functions. Attention is taken apart by
`AttentionWatch` first, so fused kernels arrive here as products and a softmax.

Weights enter as constants. What requires a gradient is therefore what depends on the input, and the
kind of an operation follows from its name and from how many of its operands do: a product of two
states is shared between them, a product with a weight is linear. There is no list of architectures.

Autograd adds up what comes back over the branches of a fork. That is what both families of rules
ask for, with different things coming back:

- `GradientRules` change derivatives. What comes back to a state t is a gradient g, and its
  relevance is t * g, which is the efficient form of AttnLRP.
- `DeepTaylor` sends back relevance itself, so every operation but a mere move of numbers is an
  autograd function whose backward is its rule.

Nothing is silently wrong: an operation without a rule, or a state that was made where the watch
cannot see, raises the designed error when relevance arrives there, and a model on whose probe that
happens does not offer `Needs.RULES`. What never carries relevance (the variance inside a norm that
is a constant by its rule) needs no rule.

    operations.py   kinds of operations, told by name; an operation with its operands
    linear.py       linear layers and convolutions in one form
    rules.py        the seven questions that a set of rules answers
    gradient.py, gamma.py, deep_taylor.py     the answers
    activations.py  which modules are element-wise functions
    watch.py        the context

It imports `record` and what lies below it, and is imported by adapters, `_case` and methods.
"""
