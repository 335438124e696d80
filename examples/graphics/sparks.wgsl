// A fountain: every instance of a square is a spark that knows its number and the time, nothing else.

struct Frame {
    view: mat4x4f,
    projection: mat4x4f,
    time: f32,
    count: f32,
}
@group(0) @binding(0) var<uniform> frame: Frame;

struct Spark {
    @builtin(position) clip: vec4f,
    @location(0) place: vec2f,
    @location(1) @interpolate(flat) age: f32,
    @location(2) @interpolate(flat) kind: u32,
}

fn chance(n: u32) -> f32 {
    var h = n * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    return f32((h >> 22u) ^ h) / 4294967295.0;
}

@vertex
fn vertex(@builtin(instance_index) n: u32, @location(0) position: vec3f) -> Spark {
    let turn = chance(3u * n) * 6.2831853;
    let out = 0.25 + 0.75 * chance(3u * n + 1u);
    let age = fract(frame.time * 0.6 + f32(n) / frame.count * 7.0);
    let t = age * 1.7;
    let way = vec3f(cos(turn) * out, 4.2 + chance(3u * n + 2u), sin(turn) * out);
    var p = way * t + vec3f(0.0, -2.6, 0.0) * t * t;
    p.y = abs(p.y);
    let size = 0.16 * (1.0 - 0.7 * age);
    let view = frame.view * vec4f(p, 1.0) + vec4f(position.xy * size, 0.0, 0.0);
    return Spark(frame.projection * view, position.xy, age, n & 3u);
}

@fragment
fn fragment(spark: Spark) -> @location(0) vec4f {
    let r = length(spark.place);
    let angle = atan2(spark.place.y, spark.place.x);
    let edge = select(1.0, 0.62 + 0.38 * cos(5.0 * angle), spark.kind == 3u);
    if r > edge {
        discard;
    }
    let hot = mix(vec3f(1.0, 0.95, 0.6), vec3f(0.9, 0.25, 0.1), spark.age);
    let cold = mix(vec3f(0.7, 0.95, 1.0), vec3f(0.15, 0.3, 0.9), spark.age);
    let base = select(hot, cold, spark.kind == 1u);
    return vec4f(base * (1.15 - 0.55 * r / edge), 1.0);
}
