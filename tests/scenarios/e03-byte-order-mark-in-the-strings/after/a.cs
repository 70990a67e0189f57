using B;
class X {}
