#version 450
// Nothing but depth.
void main() {}
