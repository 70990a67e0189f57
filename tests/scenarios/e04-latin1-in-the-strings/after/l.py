x = 1
# naïve thé, déjà vu, à la carte, père Noël
