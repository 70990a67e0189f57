using A;
class X {}
