"""Three suites of our own: faithful paraphrases and their wrong twins, perturbed numbers, edited quotations.

The texts beside this file were written for the suites, before any of them was shown to the verifier.
"""
