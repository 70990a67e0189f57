x = 1
# naïve café, déjà vu, à la carte, père Noël
