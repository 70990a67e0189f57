pub fn b() {
    y + y
}
