x = 1
# naïve café
