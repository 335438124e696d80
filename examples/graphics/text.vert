attribute vec3 position;
attribute vec2 uv;
uniform mat4 u_matrix;
varying vec2 v_uv;

void main() {
    v_uv = uv;
    gl_Position = u_matrix * vec4(position, 1.0);
}
