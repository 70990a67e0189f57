import os

def compute(values, limit):
    total = sum(values)
    return min(total, limit)
