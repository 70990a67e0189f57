fn a() {
    x + x
}
