int a() {
  return 1;
}

int b() {
  return 2;
}

int c() {
  return 3;
}
