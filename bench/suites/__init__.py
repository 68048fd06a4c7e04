"""Three suites of this project: faithful paraphrases and their wrong twins, perturbed numbers, edited quotations.

The texts in this folder were written for the suites, before any of them was shown to the verifier. Each paraphrase was
marked as rewording or reasoning (to compute, count, compare, apply a rule) after the first run, by its text and not by
the verifier's result.
"""
