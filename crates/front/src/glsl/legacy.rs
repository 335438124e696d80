//! What older GLSL has and Vulkan GLSL has not: names, and what stands for them.
//!
//! Source: the GLSL specifications 1.10 to 1.50 (compatibility profile) and GLSL ES 1.00 and 3.00. Everything that is
//! declared here carries the prefix [`PREFIX`].

use kempe_ir::Stage;

/// Of names that the pre-pass makes.
pub const PREFIX: &str = crate::LEGACY_PREFIX;

/// Words that later versions keep for themselves; older texts use them as names.
pub const LATER_KEYWORDS: &[&str] = &[
    "sample",
    "buffer",
    "shared",
    "subroutine",
    "patch",
    "precise",
    "coherent",
    "restrict",
    "readonly",
    "writeonly",
    "resource",
    "common",
    "active",
    "filter",
    "input",
    "output",
    "image",
    "superp",
    "partition",
    "noperspective",
    "half",
    "fixed",
    "unsigned",
    "long",
    "short",
];

/// Functions of old versions that only have another name now.
pub const RENAMED: &[(&str, &[&str])] = &[
    ("texture", &["texture1D", "texture2D", "texture3D", "textureCube", "texture2DRect", "shadow2DEXT"]),
    (
        "textureProj",
        &["texture1DProj", "texture2DProj", "texture3DProj", "texture2DRectProj", "shadow2DProjEXT"],
    ),
    (
        "textureLod",
        &[
            "texture1DLod",
            "texture2DLod",
            "texture3DLod",
            "textureCubeLod",
            "texture2DLodEXT",
            "textureCubeLodEXT",
        ],
    ),
    ("textureProjLod", &["texture1DProjLod", "texture2DProjLod", "texture3DProjLod", "texture2DProjLodEXT"]),
    (
        "textureGrad",
        &[
            "texture1DGradARB",
            "texture2DGradARB",
            "texture3DGradARB",
            "textureCubeGradARB",
            "texture2DGradEXT",
            "textureCubeGradEXT",
        ],
    ),
    ("textureProjGrad", &["texture2DProjGradEXT", "texture2DProjGradARB"]),
];

/// Other functions as macros: name with parameters, what it stands for.
pub const MACROS: &[(&str, &str)] = &[
    ("shadow1D(s, p)", "vec4(texture(s, p))"),
    ("shadow2D(s, p)", "vec4(texture(s, p))"),
    ("shadow2DRect(s, p)", "vec4(texture(s, p))"),
    ("shadow1DProj(s, p)", "vec4(textureProj(s, p))"),
    ("shadow2DProj(s, p)", "vec4(textureProj(s, p))"),
    ("shadow1DLod(s, p, l)", "vec4(textureLod(s, p, l))"),
    ("shadow2DLod(s, p, l)", "vec4(textureLod(s, p, l))"),
    ("ftransform()", "(kempe_ModelViewProjectionMatrix * kempe_Vertex)"),
];

/// Built-in variables: name, what stands for it (`$` is the prefix), declaration, the stages that have it.
pub struct BuiltIn {
    pub name: &'static str,
    pub stands: &'static str,
    /// `#` is the number of elements that the text uses.
    pub declared: &'static str,
    pub stages: &'static [Stage],
}

const fn built_in(
    name: &'static str,
    stands: &'static str,
    declared: &'static str,
    stages: &'static [Stage],
) -> BuiltIn {
    BuiltIn { name, stands, declared, stages }
}

const V: &[Stage] = &[Stage::Vertex];
const F: &[Stage] = &[Stage::Fragment];
const ALL: &[Stage] =
    &[Stage::Vertex, Stage::TessControl, Stage::TessEval, Stage::Geometry, Stage::Fragment, Stage::Compute];

pub const BUILT_INS: &[BuiltIn] = &[
    // Fragment outputs.
    built_in("gl_FragColor", "$FragColor", "layout(location = 0) out vec4 $FragColor;", F),
    built_in("gl_FragData", "$FragData", "layout(location = 0) out vec4 $FragData[#];", F),
    built_in("gl_FragDepthEXT", "gl_FragDepth", "", F),
    built_in(
        "gl_SecondaryFragColorEXT",
        "$SecondaryFragColor",
        "layout(location = 0, index = 1) out vec4 $SecondaryFragColor;",
        F,
    ),
    built_in("gl_Color", "$Color", "in vec4 $Color;", F),
    built_in("gl_SecondaryColor", "$SecondaryColor", "in vec4 $SecondaryColor;", F),
    built_in("gl_FogFragCoord", "$FogFragCoord", "in float $FogFragCoord;", F),
    built_in("gl_TexCoord", "$TexCoord", "in vec4 $TexCoord[8];", F),
    // Attributes.
    built_in("gl_Vertex", "$Vertex", "in vec4 $Vertex;", V),
    built_in("gl_Normal", "$Normal", "in vec3 $Normal;", V),
    built_in("gl_Color", "$Color", "in vec4 $Color;", V),
    built_in("gl_SecondaryColor", "$SecondaryColor", "in vec4 $SecondaryColor;", V),
    built_in("gl_FogCoord", "$FogCoord", "in float $FogCoord;", V),
    built_in("gl_MultiTexCoord0", "$MultiTexCoord0", "in vec4 $MultiTexCoord0;", V),
    built_in("gl_MultiTexCoord1", "$MultiTexCoord1", "in vec4 $MultiTexCoord1;", V),
    built_in("gl_MultiTexCoord2", "$MultiTexCoord2", "in vec4 $MultiTexCoord2;", V),
    built_in("gl_MultiTexCoord3", "$MultiTexCoord3", "in vec4 $MultiTexCoord3;", V),
    built_in("gl_MultiTexCoord4", "$MultiTexCoord4", "in vec4 $MultiTexCoord4;", V),
    built_in("gl_MultiTexCoord5", "$MultiTexCoord5", "in vec4 $MultiTexCoord5;", V),
    built_in("gl_MultiTexCoord6", "$MultiTexCoord6", "in vec4 $MultiTexCoord6;", V),
    built_in("gl_MultiTexCoord7", "$MultiTexCoord7", "in vec4 $MultiTexCoord7;", V),
    built_in("gl_VertexID", "gl_VertexIndex", "", V),
    built_in("gl_InstanceID", "gl_InstanceIndex", "", V),
    built_in("gl_FrontColor", "$FrontColor", "out vec4 $FrontColor;", V),
    built_in("gl_BackColor", "$BackColor", "out vec4 $BackColor;", V),
    built_in("gl_FrontSecondaryColor", "$FrontSecondaryColor", "out vec4 $FrontSecondaryColor;", V),
    built_in("gl_BackSecondaryColor", "$BackSecondaryColor", "out vec4 $BackSecondaryColor;", V),
    built_in("gl_ClipVertex", "$ClipVertex", "out vec4 $ClipVertex;", V),
    built_in("gl_FogFragCoord", "$FogFragCoord", "out float $FogFragCoord;", V),
    built_in("gl_TexCoord", "$TexCoord", "out vec4 $TexCoord[8];", V),
    // State of the fixed functions.
    built_in("gl_ModelViewMatrix", "$ModelViewMatrix", "uniform mat4 $ModelViewMatrix;", ALL),
    built_in("gl_ProjectionMatrix", "$ProjectionMatrix", "uniform mat4 $ProjectionMatrix;", ALL),
    built_in(
        "gl_ModelViewProjectionMatrix",
        "$ModelViewProjectionMatrix",
        "uniform mat4 $ModelViewProjectionMatrix;",
        ALL,
    ),
    built_in(
        "gl_ModelViewMatrixInverse",
        "$ModelViewMatrixInverse",
        "uniform mat4 $ModelViewMatrixInverse;",
        ALL,
    ),
    built_in(
        "gl_ProjectionMatrixInverse",
        "$ProjectionMatrixInverse",
        "uniform mat4 $ProjectionMatrixInverse;",
        ALL,
    ),
    built_in(
        "gl_ModelViewProjectionMatrixInverse",
        "$ModelViewProjectionMatrixInverse",
        "uniform mat4 $ModelViewProjectionMatrixInverse;",
        ALL,
    ),
    built_in(
        "gl_ModelViewMatrixTranspose",
        "$ModelViewMatrixTranspose",
        "uniform mat4 $ModelViewMatrixTranspose;",
        ALL,
    ),
    built_in(
        "gl_ProjectionMatrixTranspose",
        "$ProjectionMatrixTranspose",
        "uniform mat4 $ProjectionMatrixTranspose;",
        ALL,
    ),
    built_in(
        "gl_ModelViewProjectionMatrixTranspose",
        "$ModelViewProjectionMatrixTranspose",
        "uniform mat4 $ModelViewProjectionMatrixTranspose;",
        ALL,
    ),
    built_in(
        "gl_ModelViewMatrixInverseTranspose",
        "$ModelViewMatrixInverseTranspose",
        "uniform mat4 $ModelViewMatrixInverseTranspose;",
        ALL,
    ),
    built_in("gl_NormalMatrix", "$NormalMatrix", "uniform mat3 $NormalMatrix;", ALL),
    built_in("gl_NormalScale", "$NormalScale", "uniform float $NormalScale;", ALL),
    built_in("gl_TextureMatrix", "$TextureMatrix", "uniform mat4 $TextureMatrix[8];", ALL),
    built_in("gl_ClipPlane", "$ClipPlane", "uniform vec4 $ClipPlane[8];", ALL),
    built_in(
        "gl_Point",
        "$Point",
        "struct $PointParameters { float size; float sizeMin; float sizeMax; float fadeThresholdSize; float distanceConstantAttenuation; float distanceLinearAttenuation; float distanceQuadraticAttenuation; }; uniform $PointParameters $Point;",
        ALL,
    ),
    built_in(
        "gl_Fog",
        "$Fog",
        "struct $FogParameters { vec4 color; float density; float start; float end; float scale; }; uniform $FogParameters $Fog;",
        ALL,
    ),
    built_in(
        "gl_LightModel",
        "$LightModel",
        "struct $LightModelParameters { vec4 ambient; }; uniform $LightModelParameters $LightModel;",
        ALL,
    ),
    built_in(
        "gl_LightSource",
        "$LightSource",
        "struct $LightSourceParameters { vec4 ambient; vec4 diffuse; vec4 specular; vec4 position; vec4 halfVector; vec3 spotDirection; float spotExponent; float spotCutoff; float spotCosCutoff; float constantAttenuation; float linearAttenuation; float quadraticAttenuation; }; uniform $LightSourceParameters $LightSource[8];",
        ALL,
    ),
    built_in(
        "gl_FrontMaterial",
        "$FrontMaterial",
        "struct $FrontMaterialParameters { vec4 emission; vec4 ambient; vec4 diffuse; vec4 specular; float shininess; }; uniform $FrontMaterialParameters $FrontMaterial;",
        ALL,
    ),
    built_in(
        "gl_BackMaterial",
        "$BackMaterial",
        "struct $BackMaterialParameters { vec4 emission; vec4 ambient; vec4 diffuse; vec4 specular; float shininess; }; uniform $BackMaterialParameters $BackMaterial;",
        ALL,
    ),
    built_in(
        "gl_FrontLightModelProduct",
        "$FrontLightModelProduct",
        "struct $FrontLightModelProducts { vec4 sceneColor; }; uniform $FrontLightModelProducts $FrontLightModelProduct;",
        ALL,
    ),
    built_in(
        "gl_BackLightModelProduct",
        "$BackLightModelProduct",
        "struct $BackLightModelProducts { vec4 sceneColor; }; uniform $BackLightModelProducts $BackLightModelProduct;",
        ALL,
    ),
    built_in(
        "gl_FrontLightProduct",
        "$FrontLightProduct",
        "struct $FrontLightProducts { vec4 ambient; vec4 diffuse; vec4 specular; }; uniform $FrontLightProducts $FrontLightProduct[8];",
        ALL,
    ),
    built_in(
        "gl_BackLightProduct",
        "$BackLightProduct",
        "struct $BackLightProducts { vec4 ambient; vec4 diffuse; vec4 specular; }; uniform $BackLightProducts $BackLightProduct[8];",
        ALL,
    ),
];

/// Extensions that Vulkan GLSL knows too, by the start of their names.
pub const KEPT_EXTENSIONS: &[&str] = &[
    "GL_KHR_",
    "GL_NV_",
    "GL_GOOGLE_",
    "GL_EXT_shader_",
    "GL_EXT_control_flow_",
    "GL_EXT_scalar_",
    "GL_EXT_nonuniform_",
    "GL_EXT_samplerless_",
    "GL_EXT_demote_",
    "GL_EXT_terminate_",
    "GL_EXT_multiview",
    "GL_EXT_buffer_reference",
    "GL_EXT_debug_printf",
    "GL_ARB_gpu_shader_int64",
    "GL_ARB_gpu_shader_fp64",
    "GL_ARB_shader_ballot",
    "GL_ARB_shader_group_vote",
    "GL_ARB_shader_clock",
    "GL_ARB_sparse_texture",
];
