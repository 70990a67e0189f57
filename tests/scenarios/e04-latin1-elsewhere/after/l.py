x = 2
# naïve café
