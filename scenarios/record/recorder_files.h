#pragma once

// The recorder's Python package (traces/recorder), which is part of the program: it works wherever the program is
// copied.

#include <string>
#include <string_view>

namespace rollcall::scenario {

std::string_view recorder_init();
std::string_view recorder_main();
std::string_view recorder_call_site();
std::string_view recorder_child();
std::string_view recorder_claims();
std::string_view recorder_coalesced();
std::string_view recorder_data_dependence();
std::string_view recorder_fake();
std::string_view recorder_install();
std::string_view recorder_kernels();
std::string_view recorder_launcher();
std::string_view recorder_live();
std::string_view recorder_measured();
std::string_view recorder_memory();
std::string_view recorder_native();
std::string_view recorder_observer();
std::string_view recorder_operators();
std::string_view recorder_pretended_cuda();
std::string_view recorder_process_group();
std::string_view recorder_rank();
std::string_view recorder_record_file();
std::string_view recorder_ring();
std::string_view recorder_simulator();
std::string_view recorder_sitecustomize();
std::string_view recorder_spawn();
std::string_view recorder_store();
std::string_view recorder_threads();
std::string_view recorder_touches();
std::string_view recorder_training();

// Writes the package into `folder`, and returns the path to start with Python. Throws std::system_error.
std::string unpack_recorder(const std::string& folder);

}  // namespace rollcall::scenario
