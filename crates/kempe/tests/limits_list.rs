//! Every line of `docs/limits.md` has a test that holds it, or a reason why no test can: a line that is added, changed at its start or
//! loses its test fails here.

use std::path::Path;

/// How a line starts, and its tests: file below `crates` and function.
const TESTED: &[(&str, &[&str])] = &[
    // Stages and sources.
    (
        "Shaders of all graphics stages",
        &[
            "kempe/tests/limits.rs mesh_shaders_are_refused",
            "kempe/tests/malformed.rs modules_that_a_validator_rejects",
        ],
    ),
    (
        "Geometry shaders: stream 0 only",
        &[
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
            "kempe/tests/limits.rs initial_values_of_patches_are_refused",
        ],
    ),
    (
        "Of lookups through samplers",
        &[
            "front/tests/limits.rs every_refusal_says_what_why_and_what_to_do",
            "front/tests/sources.rs lookups",
            "ir/src/sample.rs cubes_gathers_and_comparisons",
        ],
    ),
    (
        "In the interface of a graphics stage",
        &[
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
            "kempe/tests/features.rs layers_and_viewports_are_inputs",
        ],
    ),
    (
        "64-bit floats are computed",
        &[
            "opt/tests/double.rs every_operation_is_exact",
            "opt/tests/double.rs what_has_no_software_is_named",
        ],
    ),
    (
        "`interpolateAtOffset`",
        &[
            "kempe/tests/features.rs interpolation_in_the_shader",
            "kempe/tests/features.rs an_offset_moves_along_the_plane",
        ],
    ),
    (
        "Physical storage pointers: of the",
        &["kempe/tests/features.rs physical_pointers", "front/tests/features.rs physical_pointers_are_words"],
    ),
    (
        "Each stage is compiled alone",
        &[
            "kempe/tests/limits.rs a_stage_alone_gives_everything",
            "kempe/src/link_tests.rs unread_outputs_are_removed",
        ],
    ),
    (
        "A fragment program asks",
        &["kempe/tests/limits.rs the_number_of_the_primitive_comes_from_the_hardware"],
    ),
    ("OpenCL C sources", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    (
        "HLSL: resources",
        &[
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
            "kempe/tests/limits.rs registers_that_macros_make_stay",
        ],
    ),
    ("`.shader_test` files are run", &["shader-test/tests/files.rs what_is_not_done_is_said"]),
    ("WGSL with imports", &["front/tests/sources.rs wgsl_imports"]),
    ("In OpenGL's GLSL, structures", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    ("The pre-pass for old GLSL", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    (
        "Refused by name",
        &[
            "front/tests/limits.rs every_refusal_says_what_why_and_what_to_do",
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
        ],
    ),
    (
        "A multisampled texture has four",
        &["kempe/tests/features.rs multisampled_textures", "kempe/tests/features.rs attachments"],
    ),
    ("Derivatives in compute", &["front/tests/limits.rs every_refusal_says_what_why_and_what_to_do"]),
    ("Irreducible control flow", &["kempe/tests/limits.rs irreducible_control_flow_is_refused"]),
    ("`kempe compile -W`", &["opt/tests/lint.rs nothing_to_say"]),
    ("GLSL column numbers", &["front/tests/sources.rs glsl_defines_and_includes"]),
    ("Exponential macro expansion", &["kempe/tests/limits.rs the_time_limit_ends_macros"]),
    (
        "A compile over its time limit",
        &[
            "kempe/src/limits.rs an_endless_loop_is_given_up",
            "kempe/src/limits.rs a_thread_that_waits_is_given_up",
        ],
    ),
    ("Memory that glslang uses", &["kempe/tests/limits.rs memory_of_others_is_noticed"]),
    // Sizes.
    (
        "Inlined code",
        &[
            "kempe/tests/sizes.rs beyond_the_limits",
            "front/tests/spirv.rs recursion_and_growth_are_refused",
            "front/tests/spirv.rs bombs",
        ],
    ),
    ("Private variables", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    (
        "Work-groups have at most",
        &[
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
            "kempe/tests/limits.rs large_work_groups_are_warned_of",
        ],
    ),
    ("Arrays of resources indexed", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    ("Subgroups: at most 32", &["ir/src/interp/tests.rs subgroup_operations_see_the_active_lanes"]),
    ("Shared memory starts", &["front/tests/spirv.rs shared_memory_starts_as_zeros_where_asked"]),
    // V3D.
    (
        "Tessellation rests",
        &[
            "kempe/tests/limits.rs what_the_list_refuses_is_refused",
            "kempe/tests/primitives.rs room_for_vertices",
        ],
    ),
    (
        "Four samples in a pixel",
        &[
            "kempe/tests/features.rs samples_distances_and_ends",
            "v3d/src/sim/graphics_tests.rs samples_of_their_own",
        ],
    ),
    (
        "The second colour",
        &[
            "kempe/tests/limits.rs the_second_colour_is_ignored",
            "kempe/tests/features.rs samples_distances_and_ends",
        ],
    ),
    ("Formats of colour targets", &["v3d/src/sim/graphics_tests.rs tile_buffer_formats"]),
    (
        "Atomics on 64-bit",
        &["kempe/tests/limits.rs what_the_list_refuses_is_refused", "kempe/tests/features.rs float_atomics"],
    ),
    ("Subgroups are the 16 lanes", &["v3d/tests/subgroups.rs every_operation_in_every_control"]),
    ("On 4.2 a shuffle", &["v3d/tests/subgroups.rs every_operation_in_every_control"]),
    ("Base addresses", &["kempe/tests/limits.rs work_groups_stay_below_the_limit"]),
    (
        "An array of images",
        &["kempe/tests/limits.rs what_the_list_refuses_is_refused", "v3d/tests/images.rs variable_indices"],
    ),
    ("64-bit texels", &["kempe/tests/limits.rs what_the_list_refuses_is_refused"]),
    ("A storage image without a format", &["kempe/tests/limits.rs images_without_a_format_get_one"]),
    ("A store outside of an image", &["v3d/tests/images.rs outside"]),
    ("Division and square root", &["v3d/src/lower/tests/division.rs division_with_a_less_exact_reciprocal"]),
    (
        "Special functions are modelled",
        &["ir/src/eval/tests.rs special_functions", "v3d/src/sim/tests.rs special_functions"],
    ),
    (
        "7.1 MUL `fmov` unpack",
        &["v3d/src/asm_tests.rs errors_point_at_the_place", "v3d/src/validate/tests.rs rule_10_modifiers"],
    ),
    ("The assembler takes small", &["v3d/src/asm_tests.rs errors_point_at_the_place"]),
    // Allocator.
    (
        "Both phases of an instruction",
        &["ra/tests/random.rs problems_on_random_files_are_allocated_right_or_refused_with_reason"],
    ),
    ("The graph engine keeps", &["ra/tests/graph.rs what_only_lives_through_a_loop_is_spilled_around_it"]),
    (
        "What can be made again",
        &[
            "ra/tests/graph.rs what_has_a_recipe_is_made_again_and_not_stored",
            "v3d/tests/shapes_memory.rs a30_stored_values_beside_values_made_again",
        ],
    ),
    ("With accumulators and limits", &["ra/tests/optimum.rs the_allocator_is_near_the_least_cost"]),
    (
        "V3D programs have four threads",
        &[
            "cli/tests/explain.rs spills_are_explained_by_their_scores",
            "kempe/tests/sweep.rs examples_at_every_limit",
        ],
    ),
    ("`--without splitting`", &["kempe/tests/limits.rs leaving_out_splitting_is_for_one_engine"]),
    // Checker B.
    (
        "It runs under `--verify`",
        &["v3d/tests/checkb.rs correct_code_passes", "v3d/tests/checkb.rs code_that_was_objected_to"],
    ),
    ("Of fragment programs it does", &["v3d/tests/checkb_graphics.rs quads"]),
    // Interpreter and simulator.
    (
        "Physical storage pointers reach",
        &["kempe/tests/features.rs physical_pointers", "ir/src/interp/tests.rs endless_loops_are_stopped"],
    ),
    (
        "Reading depth from",
        &[
            "v3d/src/sim/graphics_tests.rs what_a_fragment_is_given",
            "v3d/src/sim/lookup_tests.rs what_stops_a_lookup",
        ],
    ),
    ("Results the reference leaves", &["v3d/src/sim/tests.rs values_that_do_not_exist_stop_the_run"]),
    ("Raw programs: memory", &["kempe/tests/raw_programs.rs what_a_description_may_say"]),
    ("TMU operations take effect", &["v3d/src/sim/tests.rs orders_agree"]),
    ("The validator does not follow", &["v3d/src/validate/tests.rs rules_39_40_42_branches"]),
    ("Subgroups of more than 16", &["kempe/tests/limits.rs wide_subgroups_are_not_interpreted"]),
    // Tools.
    (
        "The generator of programs",
        &[
            "ir/src/generate/tests.rs generated_programs_are_well_behaved",
            "opt/tests/double.rs every_operation_is_exact",
        ],
    ),
    ("`kempe corpus run`: results", &["cli/tests/corpus.rs a_killed_run_is_taken_up_again"]),
    ("`kempe run --random` on", &["cli/tests/run.rs random_inputs_are_the_same_everywhere"]),
    ("Compute shaders only. Refused", &["kempe/tests/agx.rs what_is_not_there_is_refused"]),
    ("There is no checker B: `--verify`", &["kempe/tests/agx.rs asking_for_checker_b_is_answered"]),
    ("The simulator runs compute programs", &["agx/src/sim/tests.rs what_is_not_simulated"]),
    ("What nobody has published stops", &["agx/src/sim/tests.rs addresses"]),
    ("A frame of the stack is made", &["agx/src/sim/tests.rs stack"]),
    ("The validator does not check the order", &["agx/src/validate/tests.rs rules_7_and_8"]),
    ("The upper two bits of the texture", &["agx/tests/oracle_sample.rs sample_of_the_disassembly_oracle"]),
    ("The first GLSL file", &["kempe/tests/limits.rs texts_pay_for_their_front_end"]),
];

/// Lines without a test, and why.
const UNTESTED: &[(&str, &str)] = &[
    (
        "The comparison with a Vulkan",
        "needs a driver on the machine: `.ci/run` makes it, and a module that is chosen and left out fails there",
    ),
    ("Physical pointers count with", "no memory of the interpreter lies beyond 4 GiB"),
    ("A 16-bit value takes", "is less than could be, and not wrong"),
    ("Fused multiply-add is not used", "is less than could be, and not wrong"),
    ("Not swept over register limits", "a command that is not there"),
];

fn crates(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The lines of the list, each as one text.
fn list() -> Vec<String> {
    let text = std::fs::read_to_string(crates("../docs/limits.md")).expect("the list");
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(start) = line.strip_prefix("- ") {
            out.push(start.to_owned());
            open = true;
        } else if line.is_empty() || line.starts_with('#') {
            open = false;
        } else if let Some(last) = out.last_mut().filter(|_| open) {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    out
}

#[test]
fn every_line_has_a_test() {
    let list = list();
    assert!(list.len() > 60, "{} lines", list.len());
    let mut missing: Vec<&str> = Vec::new();
    for line in &list {
        let starts = TESTED.iter().map(|t| t.0).chain(UNTESTED.iter().map(|u| u.0));
        match starts.filter(|start| line.starts_with(start)).count() {
            1 => {}
            0 => missing.push(line),
            n => panic!("{n} entries for `{line}`"),
        }
    }
    assert!(missing.is_empty(), "lines of docs/limits.md without a test: {missing:#?}");
    for (start, _) in UNTESTED {
        assert!(list.iter().any(|line| line.starts_with(start)), "docs/limits.md has no `{start}`");
    }
    for (start, tests) in TESTED {
        assert!(list.iter().any(|line| line.starts_with(start)), "docs/limits.md has no `{start}`");
        for test in *tests {
            let (file, name) = test.split_once(' ').expect("a file and a function");
            let text = std::fs::read_to_string(crates(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let function =
                text.find(&format!("fn {name}()")).unwrap_or_else(|| panic!("{file} has no `{name}`"));
            let before = text[..function].trim_end();
            assert!(before.ends_with("#[test]"), "`{name}` of {file} is no test that always runs");
        }
    }
}
