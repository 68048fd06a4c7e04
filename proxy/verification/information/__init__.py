"""The information budget: does the cited evidence change what a model believes of a claim?"""
