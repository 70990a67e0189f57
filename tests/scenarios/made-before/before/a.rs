let limit = 20;
