if (a) {
	return 2;
	log();
}
