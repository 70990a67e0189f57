if (a) {
	return 1;
}
