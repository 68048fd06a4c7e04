"""Three suites of our own: faithful paraphrases and their wrong twins, perturbed numbers, edited quotations.

The texts beside this file were written for the suites, before any of them was shown to the verifier. Whether a
paraphrase asks for rewording or for reasoning (to compute, count, compare, apply a rule) was noted after the first run,
by what it says and not by what the verifier made of it.
"""
