//! HLSL on the command line: stages from names, entry points, semantics, registers; code on the simulator against the interpreter.

#![cfg(feature = "glsl")]

mod common;

use common::Folder;

/// Shared memory, a barrier, a constant buffer and three kinds of registers with the same number.
const COMPUTE: &str = "cbuffer Params : register(b0) { uint scale; float bias; };
StructuredBuffer<uint> source : register(t0);
RWStructuredBuffer<uint> target : register(u0);
groupshared uint tile[32];
uint turned(uint i) { return 31 - i; }
[numthreads(32, 1, 1)]
void reverse(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    tile[i] = source[id.x] * scale + uint(bias);
    GroupMemoryBarrierWithGroupSync();
    target[id.x] = tile[turned(i)];
}
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) { target[id.x] = id.x; }
";

const VERTEX: &str = "cbuffer Scene { row_major float4x4 turn; };
struct Corner { float4 place : SV_Position; float2 uv : TEXCOORD0; nointerpolation float tone : TONE; };
Corner main(float3 position : POSITION, uint number : SV_VertexID) {
    Corner c;
    c.place = mul(float4(position, 1.0), turn);
    c.uv = position.xy * 0.5 + 0.5;
    c.tone = number < 4 ? 0.5 : 0.0;
    return c;
}
";

const PIXEL: &str = "Texture2D map : register(t1);
SamplerState nearest : register(s1);
struct Corner { float4 place : SV_Position; float2 uv : TEXCOORD0; nointerpolation float tone : TONE; };
struct Colours { float4 colour : SV_Target0; float depth : SV_Depth; };
Colours main(Corner c, bool front : SV_IsFrontFace) {
    if (c.place.x < 4.0) discard;
    Colours o;
    o.colour = float4(map.Sample(nearest, c.uv).rg, front ? c.tone : 0.25, 1.0);
    o.depth = c.place.y < 8.0 ? 0.25 : 0.75;
    return o;
}
";

#[test]
fn compute_shaders_run() {
    let folder = Folder::new("hlsl-compute");
    folder.file("a.cs.hlsl", COMPUTE);
    for target in ["v3d42", "v3d71"] {
        let common = ["run", "a.cs.hlsl", "-t", target, "--compare", "-b", "0:96=zero:128"];
        let more = ["-b", "0:32=u32:0..32", "-b", "0:0=u32:3,0x40a00000", "-e", "reverse"];
        let want: Vec<String> = (0..32).map(|i| ((31 - i) * 3 + 5).to_string()).collect();
        let expect = format!("0:96=u32:{}", want.join(","));
        folder.run(&[&common[..], &more, &["--expect", &expect]].concat()).quiet();
        // `main` is the entry point if nothing is said.
        folder.run(&[&common[..], &["--expect", "0:96=u32:0..32"]].concat()).quiet();
    }
}

#[test]
fn vertex_and_pixel_shaders_draw() {
    let folder = Folder::new("hlsl-draw");
    folder.file("a.vs.hlsl", VERTEX);
    folder.file("b.ps.hlsl", PIXEL);
    let common = ["run", "a.vs.hlsl", "b.ps.hlsl", "--size", "16x16", "--mesh", "quad", "-o"];
    let more = ["--set", "turn=scale 0.5", "--texture", "map=white", "--clear", "1,1,0,1"];
    let picture = |name: &str, on: &[&str]| {
        let text = folder.run(&[&common[..], &[name], &more, on].concat()).quiet().text();
        assert!(text.contains("4 vertices, 2 triangles"), "{text}");
        std::fs::read(folder.path(name)).expect("a picture")
    };
    let wanted = picture("i.png", &[]);
    for target in ["v3d42", "v3d71"] {
        let drawn = picture("s.png", &["-t", target, "--on", "simulator"]);
        assert!(drawn == wanted, "{target}");
    }
    folder.run(&["compile", "a.vs.hlsl", "b.ps.hlsl", "-t", "v3d42,v3d71", "--verify"]).quiet();
    folder.run(&["compile", "--link", "a.vs.hlsl", "b.ps.hlsl", "-t", "v3d42,v3d71"]).quiet();
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new("hlsl-wrong");
    folder.file("a.cs.hlsl", COMPUTE);
    folder.file("bad.frag.hlsl", PIXEL.replace("float4(map", "float4x4(map"));
    folder.file("plain.hlsl", COMPUTE);
    folder.run(&["compile", "a.cs.hlsl", "-t", "v3d71", "-e", "none"]).says(1, &["none"]);
    folder.run(&["compile", "bad.frag.hlsl", "-t", "v3d71"]).says(1, &["bad.frag.hlsl:8", "error: "]);
    folder.run(&["compile", "plain.hlsl", "-t", "v3d71"]).says(1, &["--stage"]);
    folder.run(&["compile", "plain.hlsl", "-t", "v3d71", "--stage", "compute"]).quiet();
}

#[test]
fn macros_and_includes_are_known() {
    let folder = Folder::new("hlsl-include");
    folder.file("a.comp.hlsl", "#include \"n.h\"\n#ifdef ALSO\nRWStructuredBuffer<uint> o;\n#endif\n[numthreads(4, 1, 1)] void main(uint3 i : SV_DispatchThreadID) { o[i.x] = N; }\n");
    folder.file("inc/n.h", "#define N 3\n");
    folder.run(&["compile", "a.comp.hlsl", "-t", "v3d71", "-D", "ALSO"]).says(1, &["n.h"]);
    folder.run(&["compile", "a.comp.hlsl", "-t", "v3d71", "-D", "ALSO", "-I", "inc"]).quiet();
}
