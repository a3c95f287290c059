#include "scenarios/record/recorder_files.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace rollcall::scenario {
namespace {

struct PackageFile {
  std::string_view name;
  std::string_view (*text)();
};

constexpr std::array<PackageFile, 29> files = {{
    {"__init__.py", recorder_init},
    {"__main__.py", recorder_main},
    {"call_site.py", recorder_call_site},
    {"child.py", recorder_child},
    {"claims.py", recorder_claims},
    {"coalesced.py", recorder_coalesced},
    {"data_dependence.py", recorder_data_dependence},
    {"fake.py", recorder_fake},
    {"install.py", recorder_install},
    {"hook/sitecustomize.py", recorder_sitecustomize},
    {"kernels.py", recorder_kernels},
    {"launcher.py", recorder_launcher},
    {"live.py", recorder_live},
    {"measured.py", recorder_measured},
    {"memory.py", recorder_memory},
    {"native.abi3.so", recorder_native},
    {"observer.py", recorder_observer},
    {"operators.py", recorder_operators},
    {"pretended_cuda.py", recorder_pretended_cuda},
    {"process_group.py", recorder_process_group},
    {"rank.py", recorder_rank},
    {"record_file.py", recorder_record_file},
    {"ring.py", recorder_ring},
    {"simulator.py", recorder_simulator},
    {"spawn.py", recorder_spawn},
    {"store.py", recorder_store},
    {"threads.py", recorder_threads},
    {"touches.py", recorder_touches},
    {"training.py", recorder_training},
}};

}  // namespace

std::string unpack_recorder(const std::string& folder) {
  const std::filesystem::path package = std::filesystem::path(folder) / "rollcall_recorder";
  std::filesystem::create_directories(package / "hook");
  for (const PackageFile& file : files) {
    std::ofstream out(package / file.name, std::ios::binary);
    out << file.text();
    if (!out.flush()) {
      throw std::system_error(errno, std::generic_category(), package / file.name);
    }
  }
  return package;
}

}  // namespace rollcall::scenario
