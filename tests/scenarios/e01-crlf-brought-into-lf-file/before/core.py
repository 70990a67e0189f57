a = 1
LIMIT = 10
b = 2
