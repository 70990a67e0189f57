using A;
class Y {}
