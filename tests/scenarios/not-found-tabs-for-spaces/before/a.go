func f() {
	if a {
		b()
	}
}
